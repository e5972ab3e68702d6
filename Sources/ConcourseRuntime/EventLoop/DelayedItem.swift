/// A work item's submission that waits for its time, and that cancelling the item calls off.
final class DelayedItem: LoopTimer, @unchecked Sendable {
  private let item: DispatchWorkItem
  private let queue: DispatchQueue
  private let node: NodePointer

  // SAFETY: everything is constant; the work item's own rules cover its use from the loop's threads.
  init(_ item: DispatchWorkItem, for queue: DispatchQueue) {
    self.item = item
    self.queue = queue
    node = item.makeNode(for: queue, group: nil)
    super.init(owner: nil)
  }

  /// Lets the item be submitted at `deadline`; at once, to be skipped, if it has been cancelled already.
  func begin(_ deadline: Deadline) {
    if !item.beginDelay(self, { set(deadline) }) { queue.submit(node) }
  }

  /// The item has been cancelled: submits it now, since being skipped completes it for those who wait.
  func callOff() {
    if cancel() { queue.submit(node) }
  }

  override func fire() {
    item.endDelay(self)
    queue.submit(node)
  }
}
