#if WholeProcess
  internal import ConcourseABI
  public import ConcourseEvents
  public import Dispatch

  // Converts between queues of this module and of the toolchain's. Both names stand for one queue in one runtime, so
  // items keep their order whichever name submits them.

  extension ConcourseRuntime.DispatchQueue {
    /// This queue as the toolchain's `DispatchQueue`, for interfaces of Foundation and other modules.
    ///
    /// The object stands for this queue and keeps it alive. Another call may return another object. O(1). Not
    /// available if the package trait `WholeProcess` is off.
    public final var bridged: Dispatch.DispatchQueue {
      if self === ConcourseRuntime.DispatchQueue.main { return Dispatch.DispatchQueue.main }
      return QueueBridge.adopting(self) { Dispatch.DispatchQueue(label: "") }
    }

    /// The queue behind an object of the toolchain's module.
    ///
    /// All objects for one queue yield the same result. O(1). Traps if the queue belongs to another runtime, for
    /// example to a library that brought its own libdispatch.
    /// - Parameter queue: A queue of the toolchain's module.
    public static func bridging(_ queue: Dispatch.DispatchQueue) -> ConcourseRuntime.DispatchQueue {
      QueueBridge.queue { _ = queue.label }
    }
  }
#endif
