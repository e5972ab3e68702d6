extension DispatchQueue {
  /// The serial queue whose items run on the main thread, served by `dispatchMain()` or by an event loop
  /// that watches `mainQueueDescriptor`. Always the same object. Matching C function:
  /// `dispatch_get_main_queue`.
  public class var main: DispatchQueue { Runtime.mainQueue }

  /// A file descriptor that becomes readable when the main queue has items, for embedding the main queue
  /// in another event loop.
  ///
  /// Watch it for reading and, when it is readable, call `drainMainQueue()` on the main thread, which
  /// also makes it unreadable again. Non-blocking and close-on-exec; it belongs to the runtime and must
  /// not be closed. -1 when the system has no descriptor left. Matching C function:
  /// `_dispatch_get_main_queue_handle_4CF`.
  public class var mainQueueDescriptor: Int32 { Runtime.shared.mainThread.descriptor() }

  /// Runs, on the calling thread, the items that are in the main queue now; items that they add make the
  /// descriptor readable again.
  ///
  /// Traps on any thread but the main one. Matching C function: `_dispatch_main_queue_callback_4CF`.
  public class func drainMainQueue() {
    guard CurrentThread.isMain else {
      Trap.clientBug("drainMainQueue() was called off the main thread")
    }
    Runtime.shared.mainThread.drainOnce()
  }

  /// The label of the queue whose item runs on the calling thread; that of the main queue on the main
  /// thread outside items; empty on other threads. Matching C call:
  /// `dispatch_queue_get_label(DISPATCH_CURRENT_QUEUE_LABEL)`.
  public class var currentLabel: String { current?.label ?? "" }

  /// The innermost queue of the running item, or the main queue on the main thread outside items.
  package class var current: DispatchQueue? {
    if let frame = Frame.current { return frame.pointee.queue.takeUnretainedValue() }
    return CurrentThread.isMain ? Runtime.mainQueue : nil
  }
}

/// Serves the main queue on the calling thread, which must be the main thread, and never returns.
///
/// The main thread stays the main queue's thread. Traps on another thread, and inside an item of the main
/// queue. Matching C function: `dispatch_main`.
public func dispatchMain() -> Never {
  guard CurrentThread.isMain else {
    Trap.clientBug("dispatchMain() was called off the main thread")
  }
  guard Frame.current == nil else {
    Trap.clientBug("dispatchMain() was called from inside an item of a queue")
  }
  Runtime.shared.mainThread.serve()
}
