import ConcourseRecording

/// Phrases of the report about tasks.
struct TaskWording {
  private let snapshot: EngineSnapshot
  private let words: Wording
  private let byAddress: [UInt64: TaskInfo]
  private let byThread: [UInt32: TaskInfo]
  /// The children of each task that has some.
  let children: [UInt64: [TaskInfo]]

  init(_ snapshot: EngineSnapshot) {
    self.snapshot = snapshot
    words = Wording(snapshot)
    byAddress = Dictionary(snapshot.tasks.map { ($0.address, $0) }) { first, _ in first }
    byThread = Dictionary(
      snapshot.tasks.compactMap { task in task.thread.map { ($0, task) } }
    ) { first, _ in first }
    children = Dictionary(grouping: snapshot.tasks.filter { $0.parent != 0 }, by: \.parent)
  }

  func task(_ address: UInt64) -> TaskInfo? { byAddress[address] }

  /// The task that a thread runs.
  func task(on thread: UInt32) -> TaskInfo? { byThread[thread] }

  func name(_ task: TaskInfo) -> String {
    "task \(task.id)" + (task.name.map { " \"\($0)\"" } ?? "")
  }

  /// As `TaskPriority` names it.
  static func priority(_ level: UInt8) -> String {
    let name = RecordedJob(priority: level, task: 1).name(nil)
    return String(name.drop { $0 != "(" }.dropFirst().dropLast())
  }

  /// What a task does: a predicate, for one or for several.
  func activity(_ task: TaskInfo, isMany: Bool = false) -> String {
    func verb(_ stem: String) -> String { isMany ? stem : stem + "s" }
    switch task.state {
    case .created: return isMany ? "have not started" : "has not started"
    case .completed: return isMany ? "have ended" : "has ended"
    case .running:
      let thread = task.thread.flatMap { snapshot.thread($0) }
      guard let thread, thread.isBlocked else { return verb("run") }
      return isMany
        ? "block their threads" : "runs, and \(words.name(of: thread)) \(words.activity(of: thread))"
    case .enqueued: return verb("wait") + " for \(executor(task))"
    case .suspended:
      return verb("await") + " " + (task.awaits.map { awaited($0, of: task, isMany) } ?? "something")
    }
  }

  private func awaited(_ awaited: TaskInfo.Awaited, of task: TaskInfo, _ isMany: Bool) -> String {
    switch awaited {
    case .task(let address):
      guard let other = byAddress[address] else { return "a task" }
      if isMany { return other.parent == task.address ? "a child" : "a task" }
      return "\(name(other))\(other.parent == task.address ? ", its child" : "")"
    case .group:
      let number = task.awaitedChildren.count { byAddress[$0].map { $0.state != .completed } ?? false }
      return number == 0 || isMany ? "a task group" : "a task group of \(count(number, "child", "children"))"
    case .continuation: return "a continuation"
    case .sleep:
      guard let left = task.sleepLeft, !isMany else { return "a sleep" }
      let time = Wording.time(left.magnitude)
      return left < 0 ? "a sleep that should have ended \(time) ago" : "a sleep that ends in \(time)"
    case .stream: return "a stream"
    case .executor: return executor(task)
    }
  }

  /// What an enqueued task waits for.
  private func executor(_ task: TaskInfo) -> String {
    guard case .executor(let address) = task.awaits, address != 0 else { return "a thread" }
    if snapshot.queues[address] != nil { return words.quoted(address) }
    let name = actor(address)
    guard let thread = snapshot.executors[address]?.threads.first else { return name }
    let holder = byThread[thread].map { ": \(self.name($0))" } ?? ""
    return "\(name), which thread \(thread) runs\(holder)"
  }

  func actor(_ executor: UInt64) -> String {
    guard let info = snapshot.executors[executor], let name = info.name else { return "an executor" }
    if name == "DispatchMainExecutor" { return "the main actor" }
    return info.isActor ? "actor \(name)" : "executor \(name)"
  }

  /// Where in the program a task is: of a running one, its thread.
  func place(_ task: TaskInfo) -> String? {
    if let client = task.client { return Wording.place(client) }
    return task.thread.flatMap { snapshot.thread($0) }.flatMap(words.place)
  }

  /// Tasks that do the same at the same place.
  struct Row {
    let activity: String
    let place: String?
    let tasks: [TaskInfo]
  }

  func sentence(_ row: Row) -> String {
    (row.tasks.count == 1 ? name(row.tasks[0]) : "\(row.tasks.count) tasks") + " " + row.activity
  }

  /// What the tasks do, the largest row first. Tasks that have ended but are still referenced are left out.
  var rows: [Row] {
    var groups: [String: [TaskInfo]] = [:]
    for task in snapshot.tasks where task.state != .completed {
      groups["\(activity(task, isMany: true)) \(place(task) ?? "")", default: []].append(task)
    }
    return groups.values.map { tasks in
      Row(activity: activity(tasks[0], isMany: tasks.count > 1), place: place(tasks[0]), tasks: tasks)
    }.sorted { ($1.tasks.count, $0.tasks[0].id) < ($0.tasks.count, $1.tasks[0].id) }
  }
}
