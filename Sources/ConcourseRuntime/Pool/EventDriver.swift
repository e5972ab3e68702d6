/// How an idle worker of normal priority waits for events, so that what an event makes runnable runs on the thread that
/// the kernel woke. `EventLoop` implements it.
package protocol EventDriver: AnyObject, Sendable {
  /// Takes the workers' seat.
  /// - Returns: false when there is nothing to wait for, or when another worker waits.
  func takeSeat() -> Bool

  /// Gives the seat back without waiting.
  func leaveSeat()

  /// Waits for events on the calling worker, which has the seat, and handles them.
  /// - Parameter beforeEvents: called after the wait, when the seat is free again and before the events are handled.
  func pollAsWorker(milliseconds: Int32, beforeEvents: (WaitEnd) -> Void)

  /// Wakes the worker that waits in `pollAsWorker`.
  func interrupt()

  /// Starts the driver's own thread, which waits for events while no worker does, and asks the system again for what it
  /// has refused the driver meanwhile. The monitor calls it, see `Monitor.startEventLoop`.
  /// - Returns: false if the monitor must ask again.
  func askAgain() -> Bool

  /// Whether that thread has been made. If so, a worker that waits may retire.
  var hasThread: Bool { get }
}

/// Why a wait for events has ended.
package enum WaitEnd {
  case timeOut
  /// Another thread has called `interrupt`, perhaps for a worker that waited before. There is nothing to handle.
  case interruption
  case events
}
