/// The event loop as the pool knows it: a place where one worker may wait, and be called away from.
final class EventLoop: Sendable {
  static let shared = EventLoop()

  func startThread() { Trap.runtimeBug("the model has no event loop") }
  func takeSeat() -> Bool { false }
  func leaveSeat() {}
  func interrupt() { Trap.runtimeBug("the model has no event loop") }
  func pollAsWorker(milliseconds: Int32, beforeEvents: (Bool) -> Void) {
    Trap.runtimeBug("the model has no event loop")
  }
}

/// A delayed submission of a work item, of which there are none here.
final class DelayedItem: Sendable {
  func callOff() { Trap.runtimeBug("the model has no event loop") }
}
