public import ConcourseRuntime

extension DispatchGroup {
  /// Returns once nothing is outstanding: at once if the group is empty, else when the count next reaches
  /// zero.
  ///
  /// What `wait()` is to threads, this is to tasks: it suspends the calling task and blocks no thread.
  /// Cancellation of the task does not end it, since the work that is outstanding goes on all the same.
  nonisolated(nonsending) public final func finished() async {
    let queue = DispatchQueue.global(qos: DispatchQoS(ofCurrentTask: ()).qosClass)
    let call = Call { () throws(Never) in }
    await call.perform { item in notify(queue: queue, execute: item) }
    call.takeOutcome().get()
  }
}

extension DispatchWorkItem {
  /// Returns once the item has completed its first execution, or been skipped because of its cancellation;
  /// at once if it has.
  ///
  /// What `wait()` is to threads, this is to tasks: it suspends the calling task and blocks no thread.
  /// Unlike `wait()` it may be called any number of times. Cancellation of the task does not end it;
  /// cancelling the item does, when the item is reached. Traps when the item has run more than once.
  nonisolated(nonsending) public final func finished() async {
    let queue = DispatchQueue.global(qos: DispatchQoS(ofCurrentTask: ()).qosClass)
    let call = Call { () throws(Never) in }
    await call.perform { item in notify(queue: queue, execute: item) }
    call.takeOutcome().get()
  }
}
