internal import Glibc

/// A free list of nodes per thread, refilled from and emptied into a shared depot in batches.
///
/// A producer allocates what a consumer frees. Through malloc that costs a contended lock or a remote free for each
/// task; here it costs a lock for every `batch` tasks.
///
/// **No thread touches a node after `recycle`**, so the depot may return its memory to the system.
/// - A node that was in a `WorkList` has been removed by `advance(past:)`. Besides the consumer, only one thread may
///   still hold its address: the producer whose exchange of the tail returned it, which stores the node's `next` once
///   and then forgets it. There is at most one, because an exchange replaces the value that it returns. Either
///   `advance` changes the tail from this node to nil: then no exchange has returned it, and none will. Or `advance`
///   sees `next` set, waiting if necessary: then the producer has stored it, and the acquiring load that saw it orders
///   that store before all later uses of the node.
/// - A producer reads nothing of its own node after the push (`DispatchQueue.append`, `forward`). `WorkList.last` and
///   the list's `head` may hold the address of a recycled node. Other threads only compare them. The consumer follows
///   `head`, and before it stops it makes `head` name the oldest node, or nothing. (The owner of a workloop reads a
///   `head` only after it has emptied the list.)
/// - A node that never was in a list, or was in a chain, belongs to one thread or lock at a time: held back items,
///   notifications, timers, a worker's kept slot (threads that only look at the slot never follow it).
/// So after the recycling thread has stored `next`, the address is known to that thread, then to the depot under its
/// lock, then to the next owner, in this order.
package enum NodeMagazine {
  /// Nodes in one transfer between a thread and the depot.
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

  /// A node ready to be pushed, but for the client's value.
  @inline(__always)
  package static func make(
    _ kind: EntryKind, level: QoSLevel, traits: WorkTraits = [], group: UnsafeMutableRawPointer? = nil,
    admittedBy: UnsafeMutableRawPointer? = nil
  ) -> NodePointer {
    let node = allocate()
    PlainMemory.writes(beside: node.pointee.next)
    // `next` is always initialised: a push stores to it, and other threads may access it while the node is in a list.
    node.pointee.kind = kind
    node.pointee.traits = traits
    node.pointee.level = level
    node.pointee.group = group
    node.pointee.admittedBy = admittedBy
    return node
  }

  /// Clears the link of a node that is kept outside all lists for long. It has the link of the free list still, or of the
  /// list that it has left. `concourse report` finds the nodes of a list by their links, and would take it for one of them.
  @inline(__always)
  package static func unlink(_ node: NodePointer) {
    PlainMemory.writes(beside: node.pointee.next)
    // ORDERING: relaxed; the node belongs to this thread alone.
    node.pointee.next.store(nil, ordering: .relaxed)
  }

  /// Frees a node whose work has been taken.
  @inline(__always)
  package static func recycle(_ node: NodePointer) {
    let thread = CurrentThread.state
    PlainMemory.writes(beside: node.pointee.next)
    // ORDERING: relaxed; the node belongs to this thread alone.
    node.pointee.next.store(
      thread.pointee.free_nodes?.assumingMemoryBound(to: WorkNode.self), ordering: .relaxed)
    thread.pointee.free_nodes = UnsafeMutableRawPointer(node)
    thread.pointee.free_count &+= 1
    if thread.pointee.free_count >= thread.pointee.free_limit { overflow() }
  }

  @inline(never)
  private static func refill() -> NodePointer {
    // A thread that submits comes here now and then, and may have moved to another processor.
    Processor.adoptShard()
    let thread = CurrentThread.state
    let (first, count) = depot.take()
    thread.pointee.free_nodes = UnsafeMutableRawPointer(first)
    thread.pointee.free_count = count
    let node = allocate()
    if !mayKeepNodes { giveBack(thread.pointee.free_count) }
    return node
  }

  /// The free list has reached the thread's limit. The limit is 0 at first, so a thread that only consumes calls this
  /// with its first node.
  @inline(never)
  private static func overflow() {
    Processor.adoptShard()
    let count = CurrentThread.state.pointee.free_count
    guard mayKeepNodes else { return giveBack(count) }
    while CurrentThread.state.pointee.free_count >= 2 * batch {
      guard depot.lock.tryLockBriefly() else {
        // The thread keeps the nodes until the depot's lock is free, and looks again after another batch.
        CurrentThread.state.pointee.free_limit = CurrentThread.state.pointee.free_count + batch
        return
      }
      giveBack(batch, underLock: true)
    }
  }

  /// Whether the calling thread may keep free nodes. It may not after its exit hook has run: no later hook would return
  /// them.
  private static var mayKeepNodes: Bool {
    guard CurrentThread.watchExit() else { return false }
    CurrentThread.state.pointee.free_limit = 2 * batch
    return true
  }

  /// Returns all nodes, and keeps none from now on.
  static func emptyAtExit() {
    CurrentThread.state.pointee.free_limit = 0
    giveBack(CurrentThread.state.pointee.free_count)
  }

  /// - Parameter underLock: whether the caller holds the depot's lock, which this releases.
  @inline(never)
  private static func giveBack(_ count: UInt32, underLock: Bool = false) {
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
    if !underLock { depot.lock.lock() }
    depot.put(first, count: count)
  }

  /// Made on first use.
  static let depot = NodeDepot()
}

/// The nodes that all threads share.
///
/// Up to a bound, batches on their way from consumers to producers stay whole: a put is a push, a take is a pop. Nodes
/// beyond the bound return to their slabs (NodeSlab.swift). Slabs with all their nodes back return to the system,
/// except a few: after a million pending items the depot keeps no more than a busy program needs.
///
/// A lowered thread that is preempted while it holds the lock may not run for a hundred milliseconds beside busy
/// processes. So no thread of normal priority waits for the lock: a consumer keeps its nodes until later, and a producer
/// takes new ones from a reserve, whose lock no lowered thread takes. Rejected: futexes that lend priority
/// (FUTEX_LOCK_PI), because the kernel does not lend nice values; a depot for each priority, because most nodes that
/// lowered threads free come from normal ones.
final class NodeDepot: Sendable {
  /// The most batches that stay whole: 3 MiB of nodes.
  static let stocked = 1024

  let lock = Lock(.nodeDepot)
  // SAFETY: GUARDED BY `lock`.
  private nonisolated(unsafe) var batches: [NodePointer] = []
  // SAFETY: GUARDED BY `lock`.
  private nonisolated(unsafe) var slabs = NodeSlabs()

  let reserveLock = Lock(.nodeDepot)
  // SAFETY: GUARDED BY `reserveLock`.
  private nonisolated(unsafe) var reserve = NodeReserve()

  /// A chain of at most a batch.
  func take() -> (first: NodePointer, count: UInt32) {
    if !lock.tryLockBriefly() {
      if CurrentThread.state.pointee.nice <= 0 { return reserveLock.withLock { reserve.take() }.linked() }
      lock.lock()
    }
    let supply = batches.popLast().map { NodeSupply.chain($0, count: NodeMagazine.batch) } ?? slabs.take()
    lock.unlock()
    return supply.linked()
  }

  /// Starts empty in a forked child. Another thread of the parent may have held the lock in the middle of a change.
  func abandonStock() {
    lock.unlock()
    reserveLock.unlock()
    // SAFETY: the child's only thread. The old array is not released: it may be inconsistent.
    withUnsafeMutablePointer(to: &batches) { $0.initialize(to: []) }
    withUnsafeMutablePointer(to: &slabs) { $0.initialize(to: NodeSlabs()) }
    withUnsafeMutablePointer(to: &reserve) { $0.initialize(to: NodeReserve()) }
  }

  /// Stores a chain of `count` nodes that no other thread knows (see `NodeMagazine`). Call under the lock; releases it.
  func put(_ chain: NodePointer, count: UInt32) {
    var surplus: NodeSlabList?
    if count == NodeMagazine.batch && batches.count < Self.stocked {
      batches.append(chain)
    } else if !Process.isForkedChild {
      // A forked child does not know the state of its parent's slabs, and abandons the surplus.
      surplus = slabs.giveBack(chain)
    }
    lock.unlock()
    // Without the lock: the system calls are slow.
    if let surplus { surplus.release() }
  }
}
