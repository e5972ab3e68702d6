#if WholeProcess
  internal import ConcourseABI
  public import ConcourseRuntime
  public import Dispatch

  // Between a queue of ours and the toolchain's object for it. There is one runtime in the process, so both stand for
  // the same queue: an item goes where it would go through the other.

  extension ConcourseRuntime.DispatchQueue {
    /// This queue as Foundation and others know queues: for interfaces that take the toolchain's `DispatchQueue`.
    ///
    /// A new object each time, which keeps this queue alive; only the object is new. O(1). There is no such member with
    /// the package trait `WholeProcess` switched off.
    public final var bridged: Dispatch.DispatchQueue {
      if self === ConcourseRuntime.DispatchQueue.main { return Dispatch.DispatchQueue.main }
      return QueueBridge.adopting(self) { Dispatch.DispatchQueue(label: "") }
    }

    /// The queue behind an object of the toolchain's.
    ///
    /// Always the same object for a queue, whoever made it. O(1).
    /// - Parameter queue: a queue of the toolchain's module; traps if it was made by another runtime, as by a library
    ///   that was loaded with one of its own.
    public static func bridging(_ queue: Dispatch.DispatchQueue) -> ConcourseRuntime.DispatchQueue {
      QueueBridge.queue { _ = queue.label }
    }
  }
#endif
