internal import CConcourse

/// Work nodes for the coroutines' magazines, handed out and collected between executions.
///
/// A coroutine with a full magazine rarely visits the shared depot. The depot's lock would multiply the interleavings,
/// and its contents would carry over from one execution to the next.
enum NodeStock {
  /// Nodes per coroutine. A scenario that needs more uses the depot, like the engine.
  private static let perThread = 16

  // SAFETY: used by the driver on the exploring thread only; explorations run one at a time.
  private nonisolated(unsafe) static var spare: [NodePointer] = []

  /// Puts enough nodes into `spare`.
  private static func makeSpare() {
    #if LEDGER
      // Adjacent new nodes from the beginning of a line, like a batch of a new slab. Which nodes share a line must not
      // depend on the executions before.
      // SAFETY: raw memory of the right size.
      let stride = Int(PoolSize.topology == nil ? NodeSlab.dense : NodeSlab.spread)
      let row = UnsafeMutableRawPointer.allocate(
        byteCount: perThread * stride, alignment: Int(Ledger.lineSize))
      spare = (0..<perThread).map { (row + $0 * stride).assumingMemoryBound(to: WorkNode.self) }
    #else
      while spare.count < perThread { spare.append(.allocate(capacity: 1)) }
    #endif
  }

  static func fill(_ thread: UnsafeMutablePointer<concourse_thread>) {
    makeSpare()
    for _ in 0..<perThread {
      let node = spare.removeLast()
      // A new word, though the memory is used again. Only `next` is initialised, as documented in WorkNode.
      // SAFETY: raw memory of the right size.
      UnsafeMutableRawPointer(node).initializeMemory(as: Atomic<NodePointer?>.self, to: Atomic(nil))
      // ORDERING: relaxed; only the new coroutine uses the node.
      // SAFETY: a magazine contains only nodes.
      node.pointee.next.store(
        thread.pointee.free_nodes?.assumingMemoryBound(to: WorkNode.self), ordering: .relaxed)
      thread.pointee.free_nodes = UnsafeMutableRawPointer(node)
      thread.pointee.free_count += 1
    }
  }

  static func collect(_ thread: UnsafeMutablePointer<concourse_thread>) {
    // SAFETY: a magazine contains only nodes.
    while let node = thread.pointee.free_nodes?.assumingMemoryBound(to: WorkNode.self) {
      // ORDERING: relaxed; the coroutine has ended.
      thread.pointee.free_nodes = UnsafeMutableRawPointer(node.pointee.next.load(ordering: .relaxed))
      spare.append(node)
    }
    thread.pointee.free_count = 0
  }
}
