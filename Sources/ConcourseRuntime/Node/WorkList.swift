/// An intrusive list that many threads push to and one thread at a time takes from, in push order.
///
/// A push is one exchange and one store. The consumer is the thread that owns the queue (QueueState) or
/// holds the root's consumer lock (RootQueue); the list does not check that. A push onto an empty list
/// returns true: its caller must make sure that a consumer comes.
///
/// A producer may lose the processor between its exchange and its link. Until it links, the consumer
/// sees a tail that it cannot reach, and waits: nothing is lost and nothing is reordered.
@usableFromInline
struct WorkList: ~Copyable {
  /// The node pushed last, or nil when the list is empty. All pushes and the last take change this word.
  @usableFromInline let tail = Atomic<NodePointer?>(nil)
  /// The oldest node. OWNED BY the consumer, except that the producer that found the list empty writes it once.
  private let head = Atomic<NodePointer?>(nil)

  /// Whether the list is empty, for callers that must see their own pushes but not those of other threads.
  @inlinable
  var isEmpty: Bool {
    // ORDERING: relaxed; a thread always sees its own pushes, and racing pushes have no order with it.
    @inline(__always) get { tail.load(ordering: .relaxed) == nil }
  }

  /// Whether the list is empty, in the total order of SC operations (Pool/README.md).
  var isEmptyInTotalOrder: Bool {
    // ORDERING: sequentially consistent; closes the store→load race between a worker that announces that it
    // sleeps, then looks here, and a producer that pushes, then looks for sleepers.
    tail.load(ordering: .sequentiallyConsistent) == nil
  }

  /// The node pushed last, to see that another thread has pushed; it may be gone at any moment.
  var last: NodePointer? {
    // ORDERING: relaxed; an identity, nothing is read through it.
    tail.load(ordering: .relaxed)
  }

  /// Appends `node`.
  /// - Parameter beforeLink: called with the result, while the consumer cannot reach the node yet. If the node's work
  ///   may release what the caller needs after the push, the caller must retain it here.
  /// - Returns: true when the list was empty: the caller must wake the consumer.
  @inline(__always)
  func push(_ node: NodePointer, beforeLink: (_ wasEmpty: Bool) -> Void = { _ in }) -> Bool {
    // ORDERING: relaxed; the exchange publishes the node.
    node.pointee.next.store(nil, ordering: .relaxed)
    // ORDERING: sequentially consistent; releases the node's contents to the consumer's acquiring loads
    // and comes before the producer's look at the sleepers (Pool/README.md).
    guard let previous = tail.exchange(node, ordering: .sequentiallyConsistent) else {
      beforeLink(true)
      // ORDERING: releasing; pairs with the acquiring load in `first`.
      head.store(node, ordering: .releasing)
      return true
    }
    beforeLink(false)
    // ORDERING: releasing; pairs with the acquiring loads in `next(after:)` and `advance(past:)`.
    previous.pointee.next.store(node, ordering: .releasing)
    return false
  }

  /// Makes linked nodes the list's only ones, if it is empty. Consumer only, which remembers the first itself.
  func begin(endingAt last: NodePointer) -> Bool {
    // ORDERING: sequentially consistent; as in `push`. A failure reads nothing through the word.
    tail.compareExchange(
      expected: nil, desired: last, successOrdering: .sequentiallyConsistent, failureOrdering: .relaxed
    ).exchanged
  }

  /// The oldest node, which stays in the list, or nil when the list is empty. Consumer only.
  @inline(__always)
  func first() -> NodePointer? {
    PlainMemory.writes(beside: head)
    // ORDERING: acquiring; pairs with the releasing store in `push`, publishes the node's contents.
    if let node = head.load(ordering: .acquiring) { return node }
    return isEmpty ? nil : awaitHead()
  }

  /// As `first`, but nil if the producer has yet to link the node. Consumer only.
  var firstIfLinked: NodePointer? {
    // ORDERING: acquiring; as in `first`.
    head.load(ordering: .acquiring)
  }

  /// The node after `node` if its producer has linked it already. Consumer only.
  @inline(__always)
  func next(after node: NodePointer) -> NodePointer? {
    // ORDERING: acquiring; pairs with the releasing link in `push`.
    node.pointee.next.load(ordering: .acquiring)
  }

  /// Takes `node`, the oldest, out of the list. Consumer only.
  ///
  /// While the consumer goes on taking, it remembers the oldest node itself, so that it does not write the cache
  /// line that producers write. Before it stops with nodes left, it must call `leave(at:)`.
  /// - Returns: the new oldest node, or nil when the list is now empty.
  @inline(__always)
  func advance(past node: NodePointer) -> NodePointer? {
    PlainMemory.writes(beside: head)
    return next(after: node) ?? advancePastLast(node)
  }

  /// Stores `node` as the oldest, for the next consumer. Consumer only.
  @inline(__always)
  func leave(at node: NodePointer) {
    PlainMemory.writes(beside: head)
    // ORDERING: relaxed; giving up the consumer's right (a releasing transition) publishes it.
    head.store(node, ordering: .relaxed)
  }

  /// Takes the oldest node out, or returns nil when the list is empty. Consumer only.
  @inline(__always)
  func popFirst() -> NodePointer? {
    guard let node = first() else { return nil }
    if let next = advance(past: node) { leave(at: next) }
    return node
  }

  private func advancePastLast(_ node: NodePointer) -> NodePointer? {
    // ORDERING: relaxed; ordered before the next producer's store of `head` by the releasing exchange
    // below, which that producer's exchange reads.
    head.store(nil, ordering: .relaxed)
    // ORDERING: acquiring and releasing; on failure a producer has pushed behind `node`, and the load of its
    // link acquires its node.
    if tail.compareExchange(expected: node, desired: nil, ordering: .acquiringAndReleasing).exchanged {
      return nil
    }
    return awaitLink(of: node)
  }

  @inline(never)
  private func awaitHead() -> NodePointer {
    var patience = Patience()
    while true {
      // ORDERING: acquiring; as in `first`.
      if let node = head.load(ordering: .acquiring) { return node }
      patience.pause()
    }
  }

  @inline(never)
  private func awaitLink(of node: NodePointer) -> NodePointer {
    var patience = Patience()
    while true {
      if let next = next(after: node) { return next }
      patience.pause()
    }
  }
}

/// Waits for a thread that is between two instructions: spins, then yields the processor, since that thread
/// may need one.
struct Patience {
  private var rounds = 0

  mutating func pause() {
    rounds += 1
    if rounds % 64 == 0 { Processor.yield() } else { Processor.pause() }
  }
}

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
