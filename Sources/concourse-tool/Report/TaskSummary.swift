/// The tasks of Swift Concurrency in short: how many there are, and where. `concourse top` and `concourse trace` show it.
struct TaskSummary {
  /// Tasks that do the same at the same place.
  struct Place {
    var count: Int
    var state: TaskInfo.State
    /// What they do, and with the name of a single one.
    var activity: String
    var sentence: String
    /// Where in the program; nil if that is not known.
    var place: String?
  }

  var counts = TaskCounts([])
  /// The one with the most tasks first.
  var places: [Place] = []
  /// A cycle of tasks that wait for one another.
  var deadlock: String?
  /// That all tasks are suspended, and nothing is left that could resume one.
  var stall: String?
  /// Why there are none that could be shown.
  var problem: String?
  /// Whether the process has the runtime of Swift Concurrency as a library.
  var hasRuntime = true
  /// Nanoseconds since they were read.
  var age: UInt64 = 0

  /// Of a process without the runtime.
  static var none: TaskSummary {
    var tasks = TaskSummary()
    tasks.problem = "the process has no libswift_Concurrency.so, whose tasks could be shown"
    tasks.hasRuntime = false
    return tasks
  }

  init() {}

  /// - Parameters:
  ///   - snapshot: One whose tasks have been read.
  ///   - isStalled: Whether nothing is left that could resume a task.
  init(_ snapshot: EngineSnapshot, isStalled: (EngineSnapshot) -> Bool = { _ in false }) {
    counts = TaskCounts(snapshot.tasks)
    problem = snapshot.tasksProblem
    let words = TaskWording(snapshot)
    places = words.rows.map {
      Place(
        count: $0.tasks.count, state: $0.tasks[0].state, activity: $0.activity,
        sentence: $0.tasks.count == 1 ? words.sentence($0) : $0.activity, place: $0.place)
    }
    deadlock = TaskCycles(snapshot).all.first.map { TaskCycles.verdict($0, words).summary }
    if deadlock == nil && isStalled(snapshot) { stall = StalledTasks.verdict(words, snapshot).summary }
  }

  var isEmpty: Bool { counts.numbers.isEmpty }
}

extension EngineSnapshot {
  /// Reads the tasks, of a process whose threads were not stopped. The place of a task that blocks its thread is on the
  /// thread's stack; a running thread has none that could be read.
  mutating func readTaskPlaces(_ runtime: SwiftRuntime, _ symbols: Symbols) {
    readTasks(runtime, symbols)
    readStacks(symbols) { $0.task != nil && $0.isBlocked }
  }
}
