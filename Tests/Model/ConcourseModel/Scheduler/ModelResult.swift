/// Where an execution left the way it would have gone by itself: enough to repeat it.
///
/// By itself a thread goes on until it blocks, and then the next one that can, in the order of their
/// numbers, goes on. In writing, `12:2 40:1` means: at decision 12 thread 2, at decision 40 thread 1.
struct ModelSchedule: Equatable, Sendable, CustomStringConvertible {
  struct Choice: Equatable, Sendable {
    let decision: Int
    let thread: Int
  }

  var choices: [Choice]

  init(_ choices: [Choice]) { self.choices = choices }

  /// Reads what `description` writes.
  init?(_ text: String) {
    choices = []
    for part in text.split(separator: " ") {
      let numbers = part.split(separator: ":", omittingEmptySubsequences: false).map { Int($0) }
      guard numbers.count == 2, let decision = numbers[0], let thread = numbers[1] else { return nil }
      choices.append(Choice(decision: decision, thread: thread))
    }
  }

  var description: String { choices.map { "\($0.decision):\($0.thread)" }.joined(separator: " ") }
}

/// How an execution failed, and how to see it again.
struct ModelFailure: Sendable, CustomStringConvertible {
  enum Kind: Equatable, Sendable {
    /// Nobody can go on, and somebody who should has not finished.
    case deadlock
    /// Only a timeout could go on: a wake-up was lost and something papered over it.
    case timeNeeded
    /// The engine trapped.
    case trap
    /// `Model.check` was given false.
    case check
    /// Two plain accesses of a `Model.Cell` with nothing to order them.
    case race
    /// More steps than an execution should need: a livelock.
    case endless
    /// The same choices led somewhere else: the scenario depends on something outside the model.
    case nondeterministic
  }

  var kind: Kind
  var message: String
  var schedule: ModelSchedule
  var trace: [String] = []

  var description: String {
    """
    \(kind): \(message)
    schedule: \(schedule)
    \(trace.joined(separator: "\n"))
    """
  }
}

/// What an exploration found.
struct ModelResult: Sendable, CustomStringConvertible {
  var name: String
  /// Executions that were run.
  var executions = 0
  /// Those of them that came to a state known before and were not followed further.
  var pruned = 0
  /// Steps of all of them.
  var steps = 0
  /// Whether every schedule within the bound was visited.
  var isComplete = false
  /// Where random runs began.
  var seed: UInt64?
  var failure: ModelFailure?

  var description: String {
    let extent = seed.map { "random, seed \($0)" } ?? (isComplete ? "complete" : "not complete")
    let summary = "\(name): \(executions) executions (\(pruned) pruned), \(steps) steps, \(extent)"
    guard let failure else { return summary }
    return "\(summary)\n\(failure)"
  }
}
