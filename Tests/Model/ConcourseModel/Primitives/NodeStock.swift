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

  static func fill(_ thread: UnsafeMutablePointer<concourse_thread>) {
    for _ in 0..<perThread {
      let node = spare.popLast() ?? NodePointer.allocate(capacity: 1)
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
