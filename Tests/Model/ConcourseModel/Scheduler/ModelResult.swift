/// The decisions of an execution that differ from the default, which is enough to repeat it.
///
/// By default a thread runs until it blocks, then the next one in order of their numbers runs, and each operation uses
/// the newest store. `12:2 40~1` means: thread 2 at decision 12, and at step 40 the store before the newest.
/// `30!4000001,1.0,7` means: before step 30 its thread stores 7 early into the word with that key, at place 1.0; one more
/// number is what a read-modify-write reads.
struct ModelSchedule: Equatable, Sendable, CustomStringConvertible {
  enum Choice: Equatable, Sendable, CustomStringConvertible {
    case thread(Int, decision: Int)
    /// Counted from the newest of those that the step may use.
    case store(Int, step: Int)
    /// Made before the step.
    case early(EarlyStore, step: Int)

    var description: String {
      switch self {
      case .thread(let thread, let decision): "\(decision):\(thread)"
      case .store(let number, let step): "\(step)~\(number)"
      case .early(let store, let step): "\(step)!\(store.text)"
      }
    }

    /// Parses a `description`.
    init?(_ text: Substring) {
      if let mark = text.firstIndex(of: "!") {
        guard let step = Int(text[..<mark]), let store = EarlyStore(text[text.index(after: mark)...]) else {
          return nil
        }
        self = .early(store, step: step)
        return
      }
      let isStore = text.contains("~")
      let numbers = text.split(separator: isStore ? "~" : ":", omittingEmptySubsequences: false).map {
        Int($0)
      }
      guard numbers.count == 2, let place = numbers[0], let choice = numbers[1] else { return nil }
      self = isStore ? .store(choice, step: place) : .thread(choice, decision: place)
    }
  }

  var choices: [Choice]

  init(_ choices: [Choice]) { self.choices = choices }

  /// Parses a `description`.
  init?(_ text: String) {
    choices = []
    for part in text.split(separator: " ") {
      guard let choice = Choice(part) else { return nil }
      choices.append(choice)
    }
  }

  var description: String { choices.map(\.description).joined(separator: " ") }
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
    /// No failure: a thread has not come to a store that was made early (`EarlyStore`).
    case impossible
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
  /// Different states at a choice.
  var states = 0
  /// The steps of all executions.
  var steps = 0
  /// Whether every schedule within the bound was visited.
  var isComplete = false
  /// Whether it was not, since CONCOURSE_MODEL_LIMIT or CONCOURSE_MODEL_SECONDS ended it.
  var isCutOff = false
  /// Whether it went as far as it was asked to.
  var isExplored: Bool { isComplete || isCutOff }
  /// The seed of random runs.
  var seed: UInt64?
  var failure: ModelFailure?

  /// The result of an earlier search and of this one.
  func following(_ earlier: ModelResult) -> ModelResult {
    var both = self
    both.executions += earlier.executions
    both.pruned += earlier.pruned
    both.states += earlier.states
    both.steps += earlier.steps
    if earlier.executions > 0 {
      both.isComplete = isComplete && earlier.isComplete
      both.isCutOff = isExplored && earlier.isExplored && !both.isComplete
    }
    return both
  }

  var summary: String {
    let extent =
      seed.map { "random, seed \($0)" } ?? (isCutOff ? "cut off" : isComplete ? "complete" : "not complete")
    return "\(name): \(executions) executions (\(pruned) pruned), \(states) states, \(steps) steps, \(extent)"
  }

  var description: String { failure.map { "\(summary)\n\($0)" } ?? summary }
}
