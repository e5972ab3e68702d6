public import ConcourseRuntime

extension DispatchQueue {
  /// Runs a closure in its turn on this queue, and returns when it has run.
  ///
  /// What `sync` is to threads, this is to tasks: the calling task is suspended meanwhile and no thread is
  /// blocked, so it may be called from anywhere, also from an item or an actor of the same queue. The closure
  /// runs as an item submitted with `async`, on the queue's thread; it is outside of the task there. What
  /// it has captured is released before this returns, unless it is the result.
  ///
  /// **Cancellation** of the task changes nothing: the closure runs, once, and its result is returned, so
  /// that what it was to do or to clean up is never lost. Who would rather not begin when cancelled calls
  /// `try Task.checkCancellation()` before. On a queue that is never resumed this never returns.
  ///
  /// - Parameters:
  ///   - qos: the class to serve the item at; `.unspecified` means that of the queue or, failing that, of the
  ///     task's priority.
  ///   - flags: `.barrier` runs the closure alone on a private concurrent queue; QoS rules.
  ///   - work: the closure; what it captures is handed over to the queue, and may come back as
  ///     its result.
  /// - Returns: what the closure returns; what it throws is rethrown.
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
