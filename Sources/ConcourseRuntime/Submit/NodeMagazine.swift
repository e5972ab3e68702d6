internal import Glibc

/// Where nodes come from and go back to: a free list per thread, refilled from and emptied into a
/// shared depot in batches.
///
/// A producer allocates what a consumer frees. Doing that through malloc costs a contended lock or a
/// remote free for every task; here it costs a lock for every `batch` tasks.
///
/// **Nobody touches a node after `recycle`**, so that the depot may give its memory back to the system.
/// - A node that was in a `WorkList` has been taken out by `advance(past:)`, and the one thread besides the
///   consumer that may hold its address is the producer whose exchange found it as the last: that producer
///   is about to store the node's `next`, once, and then forgets it. There is at most one, since an exchange
///   takes what it finds. Either `advance` swaps the tail from this very node to nil: then no exchange has
///   found it, and none will. Or it sees `next` set, waiting for it if need be: then that producer's store
///   is in the past, and the acquiring load that saw it orders it before whatever happens to the node
///   from here on.
/// - A producer reads nothing of its own node after the push (`DispatchQueue.append`, `forward`), and
///   `WorkList.last` and the list's `head`, which may name nodes long gone, are compared and never followed
///   but by the consumer, who has made `head` name the oldest node, or nothing, before it stopped. (The owner of
///   a workloop keeps its places: it reads a `head` only after it has emptied the list.)
/// - A node that never was in a list, or was in a chain, belongs to one thread or lock at a time: held back
///   items, notifications, timers, a worker's kept slot (exchanged, never followed by those who only look).
/// So after the recycling thread's store to `next` only that thread, then the depot under its lock, then the
/// next owner know the address, each ordered after the other.
enum NodeMagazine {
  /// Nodes that travel between a thread and the depot at once.
  static let batch: UInt32 = 64

  /// An uninitialised node; fill it with `make`.
  @inline(__always)
  private static func allocate() -> NodePointer {
    let thread = CurrentThread.state
    if let first = thread.pointee.free_nodes {
      let node = first.assumingMemoryBound(to: WorkNode.self)
      // ORDERING: relaxed; a free node belongs to this thread alone.
      thread.pointee.free_nodes = UnsafeMutableRawPointer(node.pointee.next.load(ordering: .relaxed))
      thread.pointee.free_count &-= 1
      return node
    }
    return refill()
  }

  /// A node ready to be pushed.
  @inline(__always)
  static func make(
    _ work: consuming Work, level: QoSLevel, traits: WorkTraits = [],
    group: Unmanaged<DispatchGroup>? = nil, admittedBy: Unmanaged<DispatchQueue>? = nil
  ) -> NodePointer {
    let node = allocate()
    // `next` is initialised already and stays so: a push stores it, and while the node is in a list others
    // reach it.
    node.workPointer.initialize(to: consume work)
    node.pointee.traits = traits
    node.pointee.level = level
    node.pointee.group = group
    node.pointee.admittedBy = admittedBy
    return node
  }

  /// Takes back a node whose work has been taken.
  @inline(__always)
  static func recycle(_ node: NodePointer) {
    let thread = CurrentThread.state
    // ORDERING: relaxed; the node belongs to this thread alone.
    node.pointee.next.store(
      thread.pointee.free_nodes?.assumingMemoryBound(to: WorkNode.self), ordering: .relaxed)
    thread.pointee.free_nodes = UnsafeMutableRawPointer(node)
    thread.pointee.free_count &+= 1
    if thread.pointee.free_count >= thread.pointee.free_limit { overflow() }
  }

  @inline(never)
  private static func refill() -> NodePointer {
    let thread = CurrentThread.state
    let (first, count) = depot.take()
    thread.pointee.free_nodes = UnsafeMutableRawPointer(first)
    thread.pointee.free_count = count
    let node = allocate()
    if !mayKeepNodes { giveBack(thread.pointee.free_count) }
    return node
  }

  /// The free list has reached the thread's limit. That is 0 at first: a thread that only consumes comes here with
  /// its first node.
  @inline(never)
  private static func overflow() {
    let count = CurrentThread.state.pointee.free_count
    if !mayKeepNodes { giveBack(count) } else if count >= 2 * batch { giveBack(batch) }
  }

  /// Whether the calling thread may keep free nodes. Not past its exit hook, for no later hook would give them back.
  private static var mayKeepNodes: Bool {
    guard ThreadExit.watch() else { return false }
    CurrentThread.state.pointee.free_limit = 2 * batch
    return true
  }

  /// Gives all nodes back, and keeps none from now on.
  static func emptyAtExit() {
    CurrentThread.state.pointee.free_limit = 0
    giveBack(CurrentThread.state.pointee.free_count)
  }

  @inline(never)
  private static func giveBack(_ count: UInt32) {
    let thread = CurrentThread.state
    guard count > 0, let raw = thread.pointee.free_nodes else { return }
    let first = raw.assumingMemoryBound(to: WorkNode.self)
    var last = first
    for _ in 1..<max(count, 1) {
      // ORDERING: relaxed; the chain belongs to this thread alone.
      last = last.pointee.next.load(ordering: .relaxed)!
    }
    // ORDERING: relaxed; the depot's lock publishes the chain.
    thread.pointee.free_nodes = UnsafeMutableRawPointer(last.pointee.next.load(ordering: .relaxed))
    last.pointee.next.store(nil, ordering: .relaxed)
    thread.pointee.free_count &-= count
    depot.put(first, count: count)
  }

  private static let depot = NodeDepot()

  /// The depot's, made on first use.
  static var stock: NodeDepot { depot }
}

/// The shared stock of nodes.
///
/// Batches on their way from consumers to producers stay whole, up to a bound: a put and a take are a push
/// and a pop. What exceeds the bound is returned to the slabs that it was cut from (NodeSlab.swift), and slabs
/// that have all their nodes back, up to a few, to the system: a million items that have waited leave no
/// more behind than a busy program needs.
final class NodeDepot: Sendable {
  /// Whole batches that are kept: 3 MiB of nodes.
  static let stocked = 1024

  let lock = Lock()
  // SAFETY: GUARDED BY `lock`.
  private nonisolated(unsafe) var batches: [NodePointer] = []
  // SAFETY: GUARDED BY `lock`.
  private nonisolated(unsafe) var slabs = NodeSlabs()

  /// A chain of at most a batch.
  func take() -> (first: NodePointer, count: UInt32) {
    lock.withLock {
      if let batch = batches.popLast() { return NodeSupply.chain(batch, count: NodeMagazine.batch) }
      return slabs.take()
    }.linked()
  }

  /// In a forked child: begins afresh. Another thread of the parent may have held the lock, in the middle of a change.
  func abandonStock() {
    lock.unlock()
    // SAFETY: the child's only thread. The array that was there is not released: it may be torn.
    withUnsafeMutablePointer(to: &batches) { $0.initialize(to: []) }
    withUnsafeMutablePointer(to: &slabs) { $0.initialize(to: NodeSlabs()) }
  }

  /// Stocks a chain of `count` nodes that no other thread knows (see NodeMagazine.swift).
  func put(_ chain: NodePointer, count: UInt32) {
    let surplus = lock.withLock { () -> NodeSlabList? in
      guard count == NodeMagazine.batch && batches.count < Self.stocked else {
        // A forked child does not know the state of its parent's slabs, and lets the surplus go.
        return Process.isForkedChild ? nil : slabs.giveBack(chain)
      }
      batches.append(chain)
      return nil
    }
    // The system takes its time.
    if let surplus { surplus.release() }
  }
}
