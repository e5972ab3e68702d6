/// Decides which coroutine makes the next step.
protocol SchedulePolicy: AnyObject {
  /// Whether the policy makes the next choice. If not, the running coroutine continues.
  func wantsChoice(continuing: Bool) -> Bool

  /// Picks one of `options`: the ids of at least two coroutines that can continue.
  /// - Parameter continuing: Whether the first option is the coroutine that made the last step and can continue. Any
  ///   other choice is then a preemption.
  /// - Parameter decision: The number of this decision in the execution.
  /// - Parameter state: A hash of everything that determines the rest of the execution.
  /// - Returns: An index into `options`, or nil if they differ from those of the earlier execution.
  func choose(_ options: [Int], continuing: Bool, at decision: Int, state: () -> UInt64) -> Int?
}

/// Lets each coroutine that can continue make one step in turn.
final class RoundRobin: SchedulePolicy {
  func wantsChoice(continuing: Bool) -> Bool { true }

  func choose(_ options: [Int], continuing: Bool, at decision: Int, state: () -> UInt64) -> Int? {
    // The options start with the running coroutine, if it can continue, and then follow the coroutines' order.
    continuing ? 1 : 0
  }
}

/// Follows a recorded schedule. Elsewhere each coroutine runs until it blocks.
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
