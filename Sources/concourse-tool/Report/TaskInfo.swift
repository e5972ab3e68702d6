/// What the report knows of a task of Swift Concurrency.
struct TaskInfo {
  enum State: String {
    /// Never submitted.
    case created
    case enqueued, running, suspended, completed
  }

  /// How the task was made.
  enum Kind: String {
    case unstructured, asyncLet, group
  }

  /// What it waits for.
  enum Awaited: Equatable {
    case task(UInt64)
    case group
    case continuation
    /// Continuations inside the standard library.
    case sleep, stream
    /// Its turn on an actor or another serial executor; 0 if it has none.
    case executor(UInt64)
  }

  let address: UInt64
  let id: UInt64
  var state: State
  var kind = Kind.unstructured
  var name: String?
  /// The current priority, and the one at creation.
  var priority: UInt8
  var basePriority: UInt8
  var isCancelled: Bool
  /// The address of the task that awaits its end as part of its own; 0 if it has no parent.
  var parent: UInt64 = 0
  var awaits: Awaited?
  /// The children in the group that it awaits, as far as they are known.
  var awaitedChildren: [UInt64] = []
  /// Where it resumes, then where its callers do: beginnings of parts of asynchronous functions.
  var frames: [UInt64] = []
  var stack: [StackEntry] = []
  /// The thread that runs it, if it is known.
  var thread: UInt32?

  /// Nanoseconds until its sleep ends; below 0 if it should have ended. nil if that is unknown.
  var sleepLeft: Int64?

  /// Whether it runs code of the standard library only: such as the one that ends a sleep.
  var isOfRuntime = false

  /// Whether it is in the same wait as it was when it was read before.
  func waitsAs(_ before: TaskInfo) -> Bool {
    (id, state, awaitedChildren) == (before.id, before.state, before.awaitedChildren)
      // What a continuation stands for is known from functions only.
      && (awaits == before.awaits || awaits == .continuation && [.sleep, .stream].contains(before.awaits))
  }

  /// The program's functions.
  var clients: [StackEntry] { stack.filter { $0.origin == .client } }

  /// The innermost one.
  var client: StackEntry? { clients.first }
}

/// How many tasks there are in which state.
struct TaskCounts: Equatable {
  private(set) var numbers: [TaskInfo.State: Int] = [:]

  init(_ tasks: [TaskInfo]) { for task in tasks { numbers[task.state, default: 0] += 1 } }

  subscript(_ state: TaskInfo.State) -> Int { numbers[state] ?? 0 }

  /// Those that occur, as people name them.
  var words: [(state: TaskInfo.State, name: String, number: Int)] {
    let names: [(TaskInfo.State, String)] = [
      (.running, "running"), (.enqueued, "enqueued"), (.suspended, "suspended"), (.created, "not started"),
      (.completed, "ended"),
    ]
    return names.map { ($0, $1, self[$0]) }.filter { $0.number > 0 }
  }
}

/// An actor, or another serial executor, that tasks wait for.
struct ExecutorInfo {
  /// The name of its class; nil if it cannot be read.
  var name: String?
  var isActor = false
  /// The threads that run it.
  var threads: [UInt32] = []
}
