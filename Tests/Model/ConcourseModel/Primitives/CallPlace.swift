/// Coroutines have no place in a program.
enum CallPlace {
  static func descriptions(from frames: [UInt]) -> [String?] { frames.map { _ in nil } }
  static func returnAddresses(from frame: UInt) -> [UInt] { [] }
  static func description(of stack: [UInt], engine: UInt?) -> String? { nil }
}

/// The model runs no tasks.
struct CurrentTask {
  let number: UInt64
  let name: String?

  init?() { return nil }
}

/// The model runs no tasks.
enum SleepingTasks {
  static func watch() {}
}
