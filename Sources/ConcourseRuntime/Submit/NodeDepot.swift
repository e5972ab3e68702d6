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

  /// Stocks a chain of `count` nodes that nobody else knows (see NodeMagazine.swift).
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
