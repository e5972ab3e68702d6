/// The decisions of an execution that differ from the default, which is enough to repeat it.
///
/// By default a thread runs until it blocks, and then the next one in order of their numbers runs. `12:2 40:1` means:
/// thread 2 at decision 12, thread 1 at decision 40.
struct ModelSchedule: Equatable, Sendable, CustomStringConvertible {
  struct Choice: Equatable, Sendable {
    let decision: Int
    let thread: Int
  }

  var choices: [Choice]

  init(_ choices: [Choice]) { self.choices = choices }

  /// Parses a `description`.
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

/// How an execution failed, and how to repeat it.
struct ModelFailure: Sendable, CustomStringConvertible {
  enum Kind: Equatable, Sendable {
    /// No coroutine can continue, and a thread has not finished.
    case deadlock
    /// Only a timeout can continue: a wake-up was lost, and the timeout would hide it.
    case timeNeeded
    /// The engine trapped.
    case trap
    /// A `Model.check` failed.
    case check
    /// Two unordered plain accesses of a `Model.Cell`.
    case race
    /// The step limit was exceeded: a livelock.
    case endless
    /// The same choices led to another state: the scenario depends on something outside the model.
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

/// The result of an exploration.
struct ModelResult: Sendable, CustomStringConvertible {
  var name: String
  /// Executions that were run.
  var executions = 0
  /// Executions that ended early because they reached a known state.
  var pruned = 0
  /// The steps of all executions.
  var steps = 0
  /// Whether every schedule within the bound was visited.
  var isComplete = false
  /// The seed of random runs.
  var seed: UInt64?
  var failure: ModelFailure?

  var description: String {
    let extent = seed.map { "random, seed \($0)" } ?? (isComplete ? "complete" : "not complete")
    let summary = "\(name): \(executions) executions (\(pruned) pruned), \(steps) steps, \(extent)"
    guard let failure else { return summary }
    return "\(summary)\n\(failure)"
  }
}
