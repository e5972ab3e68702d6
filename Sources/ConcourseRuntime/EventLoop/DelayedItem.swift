/// A work item's submission that waits for its time, and that cancelling the item calls off.
// SAFETY: everything is constant.
final class DelayedItem: LoopTimer, @unchecked Sendable {
  /// Kept alive by the node until that is submitted, and not touched afterwards. Holding it here could make
  /// a polling thread the one that destroys it.
  private let item: Unmanaged<DispatchWorkItem>
  private let queue: DispatchQueue
  private let node: NodePointer

  init(_ item: DispatchWorkItem, for queue: DispatchQueue) {
    self.item = .passUnretained(item)
    self.queue = queue
    node = item.makeNode(for: queue, group: nil)
    super.init(owner: nil)
  }

  /// Lets the item be submitted at `deadline`; at once, to be skipped, if it has been cancelled already.
  func begin(_ deadline: Deadline) {
    let hasBegun = item._withUnsafeGuaranteedRef { $0.beginDelay(self) { set(deadline) } }
    if !hasBegun { queue.submit(node) }
  }

  /// The item has been cancelled: submits it now, since being skipped completes it for those who wait.
  func callOff() {
    if cancel() { queue.submit(node) }
  }

  override func fire() {
    item._withUnsafeGuaranteedRef { $0.endDelay(self) }
    queue.submit(node)
  }
}
