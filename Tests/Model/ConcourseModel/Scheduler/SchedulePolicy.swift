/// Decides who makes the next step.
protocol SchedulePolicy: AnyObject {
  /// Picks one of `options`, which are ids of coroutines that can go on, at least two.
  /// - Parameter continuing: whether the first option is the coroutine that made the last step and
  ///   would like to go on: any other is then a preemption.
  /// - Parameter state: a hash of everything that the rest of the execution depends on.
  /// - Returns: an index into `options`, or nil when they do not fit what the policy has seen before.
  func choose(_ options: [Int], continuing: Bool, state: () -> UInt64) -> Int?
}

/// Follows a recorded schedule, and then lets everybody run until it blocks.
final class Replay: SchedulePolicy {
  private let choices: [Int]
  private var position = 0

  init(_ schedule: ModelSchedule) { choices = schedule.choices }

  func choose(_ options: [Int], continuing: Bool, state: () -> UInt64) -> Int? {
    guard position < choices.count else { return 0 }
    defer { position += 1 }
    return options.firstIndex(of: choices[position])
  }
}
