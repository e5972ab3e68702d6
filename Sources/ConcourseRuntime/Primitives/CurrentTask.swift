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

  /// The task of another thread, which sleeps, by the address of its `concourse_thread`.
  init?(ofThread state: UInt) {
    let most = 64
    var number: UInt64 = 0
    let bytes = [UInt8](unsafeUninitializedCapacity: most) { bytes, count in
      // SAFETY: the call writes a string of at most that many bytes.
      bytes.withMemoryRebound(to: CChar.self) {
        number = concourse_task_of_thread(UInt64(state), $0.baseAddress!)
      }
      count = bytes.firstIndex(of: 0) ?? 0
    }
    guard number != 0 else { return nil }
    self.number = number
    name = bytes.isEmpty ? nil : String(decoding: bytes, as: UTF8.self)
  }
}
