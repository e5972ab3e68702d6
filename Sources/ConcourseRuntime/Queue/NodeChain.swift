/// Nodes in order, linked through their own `next`; for one thread at a time.
struct NodeChain {
  private(set) var first: NodePointer?
  private var last: NodePointer?

  var isEmpty: Bool { first == nil }

  mutating func append(_ node: NodePointer) {
    // ORDERING: relaxed; the chain belongs to one thread at a time, its owner or the holder of a lock.
    node.pointee.next.store(nil, ordering: .relaxed)
    if let last { last.pointee.next.store(node, ordering: .relaxed) } else { first = node }
    last = node
  }

  mutating func takeFirst() -> NodePointer? {
    guard let node = first else { return nil }
    // ORDERING: relaxed; as above.
    first = node.pointee.next.load(ordering: .relaxed)
    if first == nil { last = nil }
    return node
  }
}
