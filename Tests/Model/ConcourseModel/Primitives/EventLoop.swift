/// The model has no event loop: nothing in it submits with a delay.
final class EventLoop: Sendable {
  static let shared = EventLoop()

  /// Only a delayed submission from a lowered thread asks for this.
  func startThread() { Trap.runtimeBug("the model has no event loop") }
}
