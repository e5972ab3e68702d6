/// The model has no event loop: nothing in it submits with a delay, and no worker waits for events.
final class EventLoop: Sendable {
  static let shared = EventLoop()

  /// Only a delayed submission from a lowered thread asks for this.
  func startThread() { Trap.runtimeBug("the model has no event loop") }
}

/// A delayed submission of a work item, of which there are none here.
final class DelayedItem: Sendable {
  func callOff() { Trap.runtimeBug("the model has no event loop") }
}
