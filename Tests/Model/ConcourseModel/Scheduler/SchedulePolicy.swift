/// Decides who makes the next step.
protocol SchedulePolicy: AnyObject {
  /// Whether it cares at all who goes on next; if not, the running coroutine does.
  func wantsChoice(continuing: Bool) -> Bool

  /// Picks one of `options`, which are ids of coroutines that can go on, at least two.
  /// - Parameter continuing: whether the first option is the coroutine that made the last step and
  ///   would like to go on: any other is then a preemption.
  /// - Parameter decision: the number of this decision in the execution.
  /// - Parameter state: a hash of everything that the rest of the execution depends on.
  /// - Returns: an index into `options`, or nil when they do not fit what the policy has seen before.
  func choose(_ options: [Int], continuing: Bool, at decision: Int, state: () -> UInt64) -> Int?
}

/// Lets everybody who can go on make one step in turn.
final class RoundRobin: SchedulePolicy {
  func wantsChoice(continuing: Bool) -> Bool { true }

  func choose(_ options: [Int], continuing: Bool, at decision: Int, state: () -> UInt64) -> Int? {
    // The options begin with the running coroutine if it could go on, and go round from there.
    continuing ? 1 : 0
  }
}

/// Follows a recorded schedule, and lets everybody run until it blocks where that says nothing.
final class Replay: SchedulePolicy {
  private var choices: [Int: Int] = [:]

  init(_ schedule: ModelSchedule) {
    for choice in schedule.choices { choices[choice.decision] = choice.thread }
  }

  func wantsChoice(continuing: Bool) -> Bool { true }

  func choose(_ options: [Int], continuing: Bool, at decision: Int, state: () -> UInt64) -> Int? {
    guard let chosen = choices[decision] else { return 0 }
    return options.firstIndex(of: chosen)
  }
}
