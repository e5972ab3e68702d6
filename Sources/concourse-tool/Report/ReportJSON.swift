/// The report for programs. Times are in nanoseconds; queues have their addresses as identifiers.
struct ReportJSON {
  private let report: Report
  private let words: Wording
  private let tasks: TaskWording
  private let showsTasks: Bool

  static func text(_ report: Report, showsTasks: Bool = false) -> String {
    let json = ReportJSON(
      report: report, words: Wording(report.snapshot), tasks: TaskWording(report.snapshot),
      showsTasks: showsTasks)
    return json.value.text
  }

  private var snapshot: EngineSnapshot { report.snapshot }

  private var value: JSONValue {
    let process = snapshot.process
    return .object([
      ("format", .int(1)),
      (
        "process",
        .object([
          ("id", .int(process.id)), ("name", .string(process.name)),
          ("library", .string(report.library)), ("version", .optional(report.version)),
          ("core", .optional(process.core)), ("signal", process.signal.map { .int($0) } ?? .null),
        ])
      ),
      ("verdicts", .array(report.verdicts.map(verdict))),
      (
        "pool",
        .object([
          ("width", .int(snapshot.width)), ("threadLimit", .int(snapshot.cap)),
          ("threads", .int(snapshot.poolThreads)), ("bands", .array(snapshot.bands.map(band))),
        ])
      ),
      ("queues", .array((report.busyQueues + report.idleQueues).map(queue))),
      ("threads", .array(snapshot.threads.map(thread))),
      ("tasks", showsTasks ? .array(snapshot.tasks.map(task)) : .null),
      ("taskPlaces", .array(tasks.rows.map(row))),
      ("tasksProblem", .optional(snapshot.tasksProblem)),
      ("waits", .array(waits)),
      ("cycles", .array(report.graph.cycles.map { .array($0.map(node)) })),
      ("sources", .array(snapshot.sources.map(source))),
      (
        "timers",
        snapshot.timers.map {
          .object([("set", .int($0.count)), ("nextDueIn", $0.nextIn.map { .int($0) } ?? .null)])
        } ?? .null
      ),
      (
        "channels",
        .array(
          snapshot.channels.map {
            .object([("open", .int($0.channels)), ("unfinishedOperations", .int($0.unfinished))])
          })
      ),
    ])
  }

  private func verdict(_ verdict: Verdict) -> JSONValue {
    .object([
      ("kind", .string(verdict.kind.rawValue)), ("summary", .string(verdict.summary)),
      (
        "details",
        .array(verdict.details.map { .object([("text", .string($0.text)), ("place", .optional($0.place))]) })
      ),
      ("threads", .array(verdict.threads.map { .int($0) })),
      ("queues", .array(verdict.queues.map { .address($0) })),
      ("tasks", .array(verdict.tasks.map { .int($0) })),
    ])
  }

  private func band(_ band: BandInfo) -> JSONValue {
    .object([
      ("name", .string(band.name)), ("active", .int(band.counts.active)),
      ("activeLimit", .int(band.activeLimit)),
      ("searching", .int(band.counts.searching)), ("parked", .int(band.counts.parked)),
      ("threads", .int(band.counts.threads)), ("waitingEntries", .int(band.waiting)),
    ])
  }

  private func queue(_ queue: QueueInfo) -> JSONValue {
    .object([
      ("id", .address(queue.address)), ("label", .string(queue.label)), ("kind", .string(queue.kind.name)),
      ("target", queue.target == 0 ? .null : .address(queue.target)),
      ("targetLabel", .optional(snapshot.queues[queue.target]?.label)),
      ("class", .string(LevelNames.name(queue.level))), ("items", .int(queue.items + queue.heldBack)),
      ("running", .int(queue.word.readers)), ("suspensions", .int(queue.suspensions)),
      ("isInactive", .bool(queue.word.isInactive)), ("state", .string(queue.state)),
      ("holders", .array(queue.holders.map { .int($0) })),
      ("waiters", .array(queue.waiters.map { .int($0) })),
    ])
  }

  private func thread(_ thread: ThreadInfo) -> JSONValue {
    .object([
      ("id", .int(thread.id)), ("idHere", .int(thread.thread.idHere)),
      ("name", .optional(thread.thread.name)), ("role", .string(role(of: thread))),
      ("isBlocked", .bool(thread.isBlocked)),
      ("waitsFor", thread.isBlocked ? .string(words.object(of: thread)) : .null),
      ("wait", .string(waitName(thread.wait))), ("hasTimeout", .bool(thread.hasTimeout)),
      ("blockedFor", thread.blockedFor.map { .int(Int64($0)) } ?? .null),
      ("busyForAtLeast", thread.busyForAtLeast.map { .int(Int64($0)) } ?? .null),
      (
        "task",
        thread.task.map { .object([("number", .int(Int64($0.task))), ("priority", .int(Int($0.priority)))]) }
          ?? .null
      ),
      ("item", .optional(words.item(thread))), ("place", .optional(words.place(thread))),
      ("queues", .array(thread.frames.map { .address($0.queue) })),
      ("stack", .array(thread.stack.map(entry))),
    ])
  }

  private func task(_ task: TaskInfo) -> JSONValue {
    .object([
      ("number", .int(task.id)), ("name", .optional(task.name)), ("state", .string(task.state.rawValue)),
      ("kind", .string(task.kind.rawValue)), ("priority", .int(Int(task.priority))),
      ("basePriority", .int(Int(task.basePriority))), ("isCancelled", .bool(task.isCancelled)),
      ("parent", tasks.task(task.parent).map { .int($0.id) } ?? .null),
      ("thread", task.thread.map { .int($0) } ?? .null), ("activity", .string(tasks.activity(task))),
      ("awaits", task.awaits.map(awaited) ?? .null),
      ("sleepLeft", task.sleepLeft.map { .int($0) } ?? .null), ("place", .optional(tasks.place(task))),
      ("stack", .array(task.stack.map(entry))),
    ])
  }

  private func awaited(_ awaited: TaskInfo.Awaited) -> JSONValue {
    switch awaited {
    case .task(let address):
      .object([("kind", .string("task")), ("task", tasks.task(address).map { .int($0.id) } ?? .null)])
    case .group: .object([("kind", .string("group"))])
    case .continuation: .object([("kind", .string("continuation"))])
    case .sleep: .object([("kind", .string("sleep"))])
    case .stream: .object([("kind", .string("stream"))])
    case .executor(let executor):
      .object([
        ("kind", .string("executor")),
        ("queue", snapshot.queues[executor].map { .address($0.address) } ?? .null),
        ("type", .optional(snapshot.executors[executor]?.name)),
        ("threads", .array((snapshot.executors[executor]?.threads ?? []).map { .int($0) })),
      ])
    }
  }

  private func row(_ row: TaskWording.Row) -> JSONValue {
    Self.place(row.place, row.tasks.count, row.tasks[0].state, row.activity)
  }

  /// What tasks do at a place.
  static func place(_ place: String?, _ count: Int, _ state: TaskInfo.State, _ activity: String) -> JSONValue
  {
    .object([
      ("count", .int(count)), ("state", .string(state.rawValue)), ("activity", .string(activity)),
      ("place", .optional(place)),
    ])
  }

  private func role(of thread: ThreadInfo) -> String {
    switch thread.role {
    case .main: "main"
    case .worker: "worker"
    case .monitor: "monitor"
    case .events: "events"
    case .other: "other"
    }
  }

  private func waitName(_ wait: Wait) -> String {
    switch wait {
    case .turn, .service: "sync"
    case .group: "group"
    case .semaphore: "semaphore"
    case .workItem: "workItem"
    case .once: "once"
    case .loop: "parallelLoop"
    case .engine: "engine"
    case .mutex: "mutex"
    case .call(let name, _): name
    case .idle: "idle"
    case .running: "running"
    }
  }

  private func entry(_ entry: StackEntry) -> JSONValue {
    .object([
      ("address", .address(entry.address)), ("function", .string(entry.function)),
      ("symbol", .optional(entry.symbol)),
      ("image", .string(entry.image)), ("file", .optional(entry.file)),
      ("line", entry.line.map { .int($0) } ?? .null),
    ])
  }

  private var waits: [JSONValue] {
    snapshot.threads.map { WaitGraph.Node.thread($0.id) }.flatMap(edges)
      + report.busyQueues.map { WaitGraph.Node.queue($0.address) }.flatMap(edges)
  }

  private func edges(from start: WaitGraph.Node) -> [JSONValue] {
    (report.graph.edges[start] ?? []).map { .object([("from", node(start)), ("to", node($0))]) }
  }

  private func node(_ node: WaitGraph.Node) -> JSONValue {
    switch node {
    case .thread(let id): .object([("thread", .int(id))])
    case .queue(let queue): .object([("queue", .address(queue))])
    }
  }

  private func source(_ source: SourceInfo) -> JSONValue {
    .object([
      ("kind", .string(source.kind)), ("handle", .int(source.handle)), ("isActive", .bool(source.isActive)),
      ("isCancelled", .bool(source.isCancelled)), ("suspensions", .int(source.suspensions)),
      ("hasEvent", .bool(source.pending > 0 || source.isVisiting)), ("queue", .address(source.queue)),
      ("dueIn", source.dueIn.map { .int($0) } ?? .null), ("handlerThread", .int(source.handlerThread)),
    ])
  }
}
