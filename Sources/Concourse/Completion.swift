public import ConcourseEvents

extension DispatchGroup {
  /// Waits until the group is empty. Returns at once if it is, else when the count next reaches zero.
  ///
  /// Unlike `wait()`, it suspends the calling task and blocks no thread. Cancelling the task does not end the wait,
  /// because the group's work continues.
  nonisolated(nonsending) public final func finished() async {
    let queue = DispatchQueue.global(qos: DispatchQoS(ofCurrentTask: ()).qosClass)
    let call = Call { () throws(Never) in }
    await call.perform { item in notify(queue: queue, execute: item) }
    call.takeOutcome().get()
  }
}

extension DispatchWorkItem {
  /// Waits until the item has completed its first execution, or was skipped because it was cancelled. Returns at once
  /// if that has happened.
  ///
  /// Unlike `wait()`, it suspends the calling task, blocks no thread, and may be called any number of times. Cancelling
  /// the task does not end the wait. If the item is cancelled, the wait ends when the queue reaches the item. Traps if
  /// the item has run more than once.
  nonisolated(nonsending) public final func finished() async {
    let queue = DispatchQueue.global(qos: DispatchQoS(ofCurrentTask: ()).qosClass)
    let call = Call { () throws(Never) in }
    await call.perform { item in notify(queue: queue, execute: item) }
    call.takeOutcome().get()
  }
}
