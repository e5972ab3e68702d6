public import ConcourseEvents

extension DispatchQueue {
  /// Runs a closure as an item of this queue and returns its result.
  ///
  /// Unlike `sync`, it suspends the calling task and blocks no thread. It may be called from anywhere, including an
  /// item or an actor of the same queue. The closure runs like an item submitted with `async`: on the queue's thread
  /// and outside the task. Its captures are released before this method returns, unless they are part of the result.
  ///
  /// **Cancellation** of the task has no effect: the closure runs once, and its result is returned. Call `try
  /// Task.checkCancellation()` first to avoid starting after cancellation. If the queue is never resumed, this method
  /// never returns.
  ///
  /// - Parameters:
  ///   - qos: The class of the item. `.unspecified` means the queue's class or, if it has none, the class of the task's
  ///     priority.
  ///   - flags: `.barrier` runs the closure alone on a private concurrent queue. The QoS flags apply as in `async`.
  ///   - work: The closure. Its captures are sent to the queue and may return as its result.
  /// - Returns: The closure's result. An error that it throws is rethrown.
  nonisolated(nonsending)
    public final func run<Result, Failure: Error>(
      qos: DispatchQoS = .unspecified, flags: DispatchWorkItemFlags = [],
      execute work: sending @escaping () throws(Failure) -> Result
    ) async throws(Failure) -> sending Result
  {
    let qos = qos.qosClass == .unspecified ? DispatchQoS(ofCurrentTask: ()) : qos
    let call = Call(work)
    await call.perform { item in asyncUnsafe(qos: qos, flags: flags, execute: item) }
    return try call.takeOutcome().get()
  }
}
