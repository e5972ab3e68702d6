import Testing

@testable import ConcourseTool

/// The conclusions about tasks, from made-up snapshots of processes that do not change.
@Suite("verdicts on tasks")
struct TaskVerdictTests {
  private var snapshot: EngineSnapshot

  init() {
    var process = TargetProcess(id: 1, name: "made up", memory: EmptyMemory(), regions: [], threads: [])
    process.isFrozen = true
    snapshot = EngineSnapshot(process: process)
  }

  private func task(
    _ id: UInt64, _ state: TaskInfo.State = .suspended, awaits: TaskInfo.Awaited? = nil,
    children: [UInt64] = [], thread: UInt32? = nil
  ) -> TaskInfo {
    var task = TaskInfo(
      address: id << 8, id: id, state: state, priority: 21, basePriority: 21, isCancelled: false)
    (task.awaits, task.awaitedChildren, task.thread) = (awaits, children.map { $0 << 8 }, thread)
    return task
  }

  private func thread(_ id: UInt32, _ wait: Wait) -> ThreadInfo {
    var info = ThreadInfo(id: id, thread: TargetThread(id: id))
    info.wait = wait
    return info
  }

  private func queue(_ address: UInt64, owner: UInt32) -> QueueInfo {
    QueueInfo(
      address: address, kind: .serial, label: "q", word: QueueWord(bits: UInt64(owner)),
      place: .init(word: 0),
      target: 0, level: 3, width: nil)
  }

  private func cycles(_ snapshot: EngineSnapshot) -> [[UInt64]] {
    TaskCycles(snapshot).all.map { $0.map(\.id) }
  }

  @Test("tasks that await one another, or themselves")
  func circle() {
    var snapshot = snapshot
    snapshot.tasks = [
      task(1, awaits: .task(2 << 8)), task(2, awaits: .task(3 << 8)), task(3, awaits: .task(2 << 8)),
      task(4, awaits: .task(4 << 8)), task(5, awaits: .continuation), task(6, awaits: .task(5 << 8)),
    ]
    #expect(cycles(snapshot) == [[2, 3], [4]])
    let verdicts = Verdicts(snapshot, WaitGraph(snapshot)).all
    #expect(verdicts.map(\.kind) == [.deadlock, .deadlock])
    #expect(verdicts.map(\.tasks) == [[2, 3], [4]])
    #expect(
      verdicts.map(\.summary) == [
        "deadlock: 2 tasks wait for one another", "deadlock: a task waits for itself",
      ])
    #expect(verdicts[0].details.map(\.text) == ["task 2 awaits task 3", "task 3 awaits task 2"])
  }

  @Test("the tree of tasks keeps its order at each depth")
  func deepTree() {
    var snapshot = snapshot
    snapshot.tasks = (1...40).map { task($0, awaits: .continuation) }
    for index in 1..<39 { snapshot.tasks[index].parent = snapshot.tasks[index - 1].address }
    let lines = TaskText(snapshot, showsEach: true, showsAll: false).lines
    #expect(lines.map { $0.split(separator: " ")[1] } == (1...40).map { "\($0)" })
    #expect(
      lines[39].hasPrefix("  task 40") && lines[38].hasPrefix(String(repeating: " ", count: 34) + "task"))
  }

  @Test("rows of tasks that await their children")
  func manyParents() {
    var snapshot = snapshot
    snapshot.tasks = (1...6).map { task($0, awaits: $0 < 4 ? .task(($0 + 3) << 8) : .sleep) }
    for index in 3..<6 { snapshot.tasks[index].parent = snapshot.tasks[index - 3].address }
    let words = TaskWording(snapshot)
    #expect(words.rows.map { words.sentence($0) } == ["3 tasks await a child", "3 tasks await a sleep"])
  }

  @Test("a task that awaits a group is stuck only if all known children are")
  func group() {
    var snapshot = snapshot
    snapshot.tasks = [
      task(1, awaits: .group, children: [2, 3]), task(2, awaits: .task(1 << 8)),
      task(3, awaits: .task(1 << 8)),
    ]
    // Through one of the children.
    #expect(cycles(snapshot).map(\.first) == [1] && cycles(snapshot).map(\.count) == [2])
    // The other child goes on, or has ended.
    for other in [
      task(3, awaits: .continuation), task(3, .running), task(3, .completed), task(3, awaits: .sleep),
    ] {
      snapshot.tasks[2] = other
      #expect(cycles(snapshot).isEmpty)
    }
    // A child that was not read; no known children.
    snapshot.tasks.removeLast()
    #expect(cycles(snapshot).isEmpty)
    snapshot.tasks[0].awaitedChildren = []
    #expect(cycles(snapshot).isEmpty)
  }

  @Test("nothing is left that could resume a task")
  func stalled() {
    var snapshot = snapshot
    snapshot.threads = [thread(1, .idle), thread(2, .idle)]
    #expect(!StalledTasks.areStalled(snapshot))
    snapshot.tasks = [task(1, awaits: .continuation), task(2, .completed)]
    #expect(StalledTasks.areStalled(snapshot))
    #expect(StalledTasks.isConfirmed(snapshot.process) { _ in nil })
    let stalled = Verdicts(snapshot, WaitGraph(snapshot), isStalled: { StalledTasks.areStalled(snapshot) })
      .all
    #expect(stalled.map(\.kind) == [.stalledTasks] && stalled[0].tasks == [1])
    #expect(stalled[0].details.map(\.text) == ["task 1 awaits a continuation"])

    func isStalled(_ change: (inout EngineSnapshot) -> Void) -> Bool {
      var changed = snapshot
      change(&changed)
      return StalledTasks.areStalled(changed)
    }
    for wait in [Wait.running, .engine, .call("read", nil), .semaphore(1)] {
      #expect(!isStalled { $0.threads[1].wait = wait })
    }
    for state in [TaskInfo.State.running, .enqueued, .created] {
      #expect(!isStalled { $0.tasks[1].state = state })
    }
    #expect(!isStalled { $0.timers = TimersInfo(count: 1, nextIn: nil) })
    #expect(isStalled { $0.timers = TimersInfo(count: 0, nextIn: nil) })
    #expect(!isStalled { $0.bands = [BandInfo(name: "b", activeLimit: 1, waiting: 1)] })
    #expect(!isStalled { $0.channels = [ChannelInfo(channels: 1, unfinished: 1)] })
    let source = SourceInfo(
      address: 1, backend: 1, kind: "signal", handle: 15, isActive: true, isCancelled: false, suspensions: 0,
      isVisiting: false, pending: 0, queue: 1, dueIn: nil, handlerThread: 0)
    #expect(!isStalled { $0.sources = [source] })
    #expect(!isStalled { $0.tasksProblem = "another layout" })
    #expect(
      !isStalled {
        var busy = self.queue(8, owner: 0)
        busy.items = 1
        $0.queues = [8: busy]
      })
    // Whose thread waits for events is not known from a core dump.
    #expect(
      !isStalled {
        $0.process.core = "core"
        $0.threads[1].role = .events
      })
  }

  @Test("a thread that sleeps while it has an actor for which tasks wait")
  func heldActor() throws {
    var snapshot = snapshot
    snapshot.threads = [thread(7, .call("read", nil))]
    snapshot.executors = [0xA0: ExecutorInfo(name: "Bank", isActor: true, threads: [7])]
    snapshot.tasks = [task(1, .enqueued, awaits: .executor(0xA0)), task(2, .running, thread: 7)]
    let verdict = try #require(Verdicts(snapshot, WaitGraph(snapshot)).all.first)
    #expect(verdict.kind == .heldActor && verdict.tasks == [1] && verdict.threads == [7])
    #expect(verdict.summary == "task 2 blocks its thread and holds actor Bank: 1 task waits behind it")
    // The main actor's jobs are items of the main queue: one cause.
    var main = queue(0x1000, owner: 0)
    (main.kind, main.items) = (.main, 1)
    snapshot.queues = [main.address: main]
    snapshot.threads[0].role = .main
    #expect(Verdicts(snapshot, WaitGraph(snapshot)).all.map(\.kind) == [.mainQueue])
    snapshot.queues = [:]
    snapshot.threads = [thread(7, .running)]
    #expect(Verdicts(snapshot, WaitGraph(snapshot)).all.map(\.kind) == [.nothing])
  }

  @Test(
    "all tasks that run, or as many as may be active, block their threads, for long and without a time-out")
  func blocked() throws {
    var snapshot = snapshot
    snapshot.width = 2
    snapshot.threads = [thread(7, .semaphore(1)), thread(8, .group(2))]
    for index in 0..<2 { snapshot.threads[index].blockedFor = 2_000_000_000 }
    snapshot.tasks = [task(1, .running, thread: 7), task(2, .running, thread: 8)]
    let verdict = try #require(Verdicts(snapshot, WaitGraph(snapshot)).all.first)
    #expect(verdict.kind == .blockedTasks && verdict.tasks == [1, 2] && verdict.threads == [7, 8])
    #expect(verdict.summary == "2 tasks block their threads, for at least 2.0 s")
    for change in 0..<5 {
      var other = snapshot
      switch change {
      case 0: other.threads[0].hasTimeout = true
      case 1: other.threads[0].blockedFor = 900_000_000
      case 2: other.threads[0].wait = .call("read", nil)
      case 3: other.tasks[1].thread = nil
      default:
        other.width = 3
        other.tasks.append(task(3, .running))
      }
      #expect(Verdicts(other, WaitGraph(other)).all.map(\.kind) == [.nothing])
    }
  }
}
