/// Tasks that wait for one another for ever.
///
/// A task that awaits another one goes on when that has ended. A task that awaits a group goes on when any of the group's
/// children ends, so it is stuck only if all of them are. Cancellation ends neither wait. Threads wait for no task, as far
/// as can be told, so a cycle that leads through a thread or a queue has no task in it (`WaitGraph`).
///
/// The process may run while it is read. But a task that awaits another one does so until that has ended. So a cycle has
/// existed at one time if each of its tasks, and each child that it hangs on, waits as before when all have been read.
struct TaskCycles {
  private let process: TargetProcess
  private let layout: TaskLayout?
  private let tasks: [UInt64: TaskInfo]
  private var stuck: Set<UInt64> = []
  /// The tasks of each cycle, in the order in which they wait.
  private(set) var all: [[TaskInfo]] = []

  /// More are hardly looked at.
  private static let most = 100

  init(_ snapshot: EngineSnapshot) {
    (process, layout) = (snapshot.process, snapshot.taskLayout)
    tasks = Dictionary(snapshot.tasks.map { ($0.address, $0) }) { first, _ in first }
    findStuck()
    guard !stuck.isEmpty else { return }
    // From each task only one way is followed, and from none twice.
    var visited: Set<UInt64> = []
    for task in snapshot.tasks where all.count < Self.most {
      var path: [UInt64] = []
      var next = task.address
      while stuck.contains(next), visited.insert(next).inserted {
        path.append(next)
        next = targets(next).first(where: stuck.contains) ?? 0
      }
      guard let start = path.firstIndex(of: next), stillStands(path[start...]) else { continue }
      all.append(path[start...].compactMap { tasks[$0] })
    }
  }

  /// The tasks that a task waits for.
  private func targets(_ address: UInt64) -> Set<UInt64> {
    guard let task = tasks[address], task.state == .suspended else { return [] }
    switch task.awaits {
    case .task(let other): return [other]
    case .group: return Set(task.awaitedChildren)
    case .continuation, .sleep, .stream, .executor, nil: return []
    }
  }

  /// Takes away, as long as there is one, a task that can go on.
  private mutating func findStuck() {
    var waiters: [UInt64: [UInt64]] = [:]
    var free: [UInt64] = []
    for address in tasks.keys {
      let targets = targets(address)
      for target in targets { waiters[target, default: []].append(address) }
      // What is no task that could be read may end.
      if targets.isEmpty || targets.contains(where: { tasks[$0] == nil }) { free.append(address) }
    }
    stuck = Set(tasks.keys)
    // One target is enough, also of a group.
    while let address = free.popLast() {
      guard stuck.remove(address) != nil else { continue }
      free += waiters[address] ?? []
    }
  }

  /// Whether all that the cycle hangs on waits as before.
  private func stillStands(_ cycle: ArraySlice<UInt64>) -> Bool {
    if process.isStill { return true }
    var seen: Set<UInt64> = []
    var open = Array(cycle)
    while let address = open.popLast() {
      guard seen.insert(address).inserted else { continue }
      guard let layout, let task = tasks[address],
        let now = TaskReader.task(at: address, in: process, layout), now.waitsAs(task)
      else { return false }
      open += targets(address)
    }
    return true
  }

  static func verdict(_ cycle: [TaskInfo], _ words: TaskWording) -> Verdict {
    Verdict(
      kind: .deadlock,
      summary: cycle.count == 1
        ? "deadlock: a task waits for itself" : "deadlock: \(cycle.count) tasks wait for one another",
      details: cycle.map { task in
        .init(text: "\(words.name(task)) \(words.activity(task))", place: words.place(task))
      },
      tasks: cycle.map(\.id))
  }
}
