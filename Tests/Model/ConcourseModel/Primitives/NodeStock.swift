internal import CConcourse

/// Work nodes for the coroutines' magazines, handed out and collected between executions.
///
/// With a stocked magazine a coroutine hardly ever visits the shared depot: its lock would be one more
/// thing to interleave, and what one execution leaves in it would change the course of the next.
enum NodeStock {
  /// Nodes per coroutine; a scenario that needs more goes to the depot as the engine would.
  private static let perThread = 16

  // SAFETY: used by the driver on the exploring thread only; explorations run one at a time.
  private nonisolated(unsafe) static var spare: [NodePointer] = []

  static func fill(_ thread: UnsafeMutablePointer<concourse_thread>) {
    for _ in 0..<perThread {
      let node = spare.popLast() ?? make()
      // ORDERING: relaxed; the node belongs to the coming coroutine alone.
      // SAFETY: a magazine holds nothing but nodes.
      node.pointee.next.store(
        thread.pointee.free_nodes?.assumingMemoryBound(to: WorkNode.self), ordering: .relaxed)
      thread.pointee.free_nodes = UnsafeMutableRawPointer(node)
      thread.pointee.free_count += 1
    }
  }

  static func collect(_ thread: UnsafeMutablePointer<concourse_thread>) {
    // SAFETY: a magazine holds nothing but nodes.
    while let node = thread.pointee.free_nodes?.assumingMemoryBound(to: WorkNode.self) {
      // ORDERING: relaxed; the coroutine has ended.
      thread.pointee.free_nodes = UnsafeMutableRawPointer(node.pointee.next.load(ordering: .relaxed))
      spare.append(node)
    }
    thread.pointee.free_count = 0
  }

  private static func make() -> NodePointer {
    let node = NodePointer.allocate(capacity: 1)
    // SAFETY: raw memory of the right size; only `next` is initialised, as WorkNode documents.
    UnsafeMutableRawPointer(node).initializeMemory(as: Atomic<NodePointer?>.self, to: Atomic(nil))
    return node
  }
}
