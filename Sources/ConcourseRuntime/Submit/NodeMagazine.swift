internal import Glibc

/// Where nodes come from and go back to: a free list per thread, refilled from and emptied into a
/// shared depot in batches.
///
/// A producer allocates what a consumer frees. Doing that through malloc costs a contended lock or a
/// remote free for every task; here it costs a lock for every `batch` tasks.
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
    // `next` stays initialised for the node's whole life: a late producer may still be about to link it.
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
    if thread.pointee.free_count >= 2 * batch { giveBack(batch) }
  }

  @inline(never)
  private static func refill() -> NodePointer {
    let thread = CurrentThread.state
    CurrentThread.armExitHook { NodeMagazine.giveBack(CurrentThread.state.pointee.free_count) }
    if let chain = depot.take() {
      thread.pointee.free_nodes = UnsafeMutableRawPointer(chain)
      thread.pointee.free_count = batch
    } else {
      let nodes = NodePointer.allocate(capacity: Int(batch))
      for index in 0..<Int(batch) {
        // SAFETY: raw memory of the right size; only `next` is initialised, as WorkNode documents.
        let next = index + 1 < Int(batch) ? nodes + index + 1 : nil
        UnsafeMutableRawPointer(nodes + index).initializeMemory(
          as: Atomic<NodePointer?>.self, to: Atomic(next))
      }
      thread.pointee.free_nodes = UnsafeMutableRawPointer(nodes)
      thread.pointee.free_count = batch
    }
    return allocate()
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
}

/// The shared stock of node batches.
private final class NodeDepot: Sendable {
  private let lock = Lock()
  // SAFETY: GUARDED BY `lock`.
  private nonisolated(unsafe) var batches: [NodePointer] = []
  // SAFETY: GUARDED BY `lock`. Nodes of threads that exited with less than a batch.
  private nonisolated(unsafe) var loose: NodePointer?
  private nonisolated(unsafe) var looseCount: UInt32 = 0

  /// One whole batch, or nil.
  func take() -> NodePointer? {
    lock.withLock { batches.popLast() }
  }

  /// Stocks a chain of `count` nodes.
  func put(_ chain: NodePointer, count: UInt32) {
    lock.withLock {
      if count == NodeMagazine.batch { return batches.append(chain) }
      var rest: NodePointer? = chain
      while let node = rest {
        // ORDERING: relaxed; guarded by the lock.
        rest = node.pointee.next.load(ordering: .relaxed)
        node.pointee.next.store(loose, ordering: .relaxed)
        loose = node
        looseCount += 1
        if looseCount == NodeMagazine.batch {
          batches.append(node)
          (loose, looseCount) = (nil, 0)
        }
      }
    }
  }
}
