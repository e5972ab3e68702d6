internal import CConcourse

/// The task of Swift Concurrency whose job the calling thread runs.
struct CurrentTask {
  let number: UInt64
  /// nil if it has none.
  let name: String?

  /// nil if the thread runs no job.
  init?() {
    var number: UInt64 = 0
    // SAFETY: the call sets `number` if there is a task; the name lives as long as the task.
    let name = concourse_current_task(&number)
    guard number != 0 else { return nil }
    self.number = number
    self.name = name.map { String(cString: $0) }
  }
}
