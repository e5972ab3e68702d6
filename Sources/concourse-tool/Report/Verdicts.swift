/// What the report concludes, the most serious first.
struct Verdict {
  enum Kind: String {
    case deadlock, crash, starvedPool, suspendedQueue, inactiveQueue, barrier, mainQueue, heldQueue, heldActor
    case blockedTasks, stalledTasks, nothing
  }

  let kind: Kind
  /// One sentence.
  let summary: String
  /// One line for each thread or queue concerned, and where that is in the program.
  var details: [Detail] = []
  var queues: [UInt64] = []
  var threads: [UInt32] = []
  /// Numbers of tasks.
  var tasks: [UInt64] = []

  struct Detail {
    let text: String
    var place: String?
  }
}

struct Verdicts {
  /// With what was read once more.
  private(set) var snapshot: EngineSnapshot
  private let graph: WaitGraph
  private let watch: HoldWatch
  /// What lasts.
  private let standstill: Standstill
  /// The look at what may last, for the next call.
  let look: Standstill
  private(set) var all: [Verdict] = []
  /// The cycles of the graph that existed at one time.
  private(set) var cycles: [[WaitGraph.Node]] = []

  /// - Parameters:
  ///   - earlier: An earlier look at the process. With it, nothing is watched, so the call does not wait; held queues and
  ///     actors are not reported then.
  ///   - readAgain: Reads the holders of queues once more, with their stacks.
  ///   - isStalled: Whether nothing is left that could resume a task. Asked if there is no other cause.
  init(
    _ snapshot: EngineSnapshot, _ graph: WaitGraph, since earlier: Standstill? = nil,
    readAgain: HoldWatch.ReadAgain? = nil, isStalled: () -> Bool = { false }
  ) {
    var snapshot = snapshot
    self.graph = graph
    look = Standstill(snapshot)
    let watched = snapshot.queues.values.filter { queue in
      // The main thread may be about to serve its queue.
      (!queue.holders.isEmpty || queue.kind == .main) && queue.items + queue.heldBack > 0
        && queue.kind != .global && !queue.word.isSuspended && !queue.word.isInactive
    }
    watch = HoldWatch(snapshot, earlier == nil ? watched : [], readAgain: readAgain)
    for holder in watch.holders { snapshot.replace(holder) }
    self.snapshot = snapshot
    standstill = earlier.map(look.common) ?? look.lasting(snapshot)
    let words = Wording(snapshot)
    cycles = graph.cycles.filter { stillStands($0) }
    for cycle in cycles { all.append(deadlock(cycle, words)) }
    let taskWords = TaskWording(snapshot)
    for cycle in TaskCycles(snapshot).all { all.append(TaskCycles.verdict(cycle, taskWords)) }
    if let crash = snapshot.process.crash { all.append(verdict(on: crash, words)) }
    for band in snapshot.bands { if let verdict = starvation(of: band, words) { all.append(verdict) } }
    for held in earlier == nil ? ActorWatch(snapshot).held : []
    where !all.contains(where: { $0.kind != .crash && $0.threads.contains(held.thread) }) {
      all.append(verdict(on: held, words, taskWords))
    }
    let concerned = Set(all.flatMap(\.queues))
    // The queue with the most items first.
    for queue in snapshot.queues.values.sorted(by: { ($0.items, $1.address) > ($1.items, $0.address) })
    where !concerned.contains(queue.address) {
      if let verdict = verdict(on: queue, words) { all.append(verdict) }
    }
    joinHierarchies(words)
    // The main actor's jobs are items of the main queue.
    let main = all.filter { $0.kind == .mainQueue }.flatMap(\.threads)
    all.removeAll { $0.kind == .heldActor && $0.threads == main }
    all.sort { Self.rank($0.kind) < Self.rank($1.kind) }
    if all.isEmpty, let verdict = blockedTasks(words) { all.append(verdict) }
    if all.isEmpty && isStalled() { all.append(StalledTasks.verdict(taskWords, snapshot)) }
    if all.isEmpty { all.append(Verdict(kind: .nothing, summary: quiet())) }
  }

  private static func rank(_ kind: Verdict.Kind) -> Int {
    switch kind {
    case .deadlock: 0
    // The engine itself traps because of a deadlock.
    case .crash: 1
    case .starvedPool: 2
    case .suspendedQueue, .inactiveQueue: 3
    case .barrier: 4
    case .mainQueue: 5
    case .heldQueue, .heldActor, .blockedTasks: 6
    case .stalledTasks: 7
    case .nothing: 8
    }
  }

  private func quiet() -> String {
    if !snapshot.isStarted { return "the process has not used a queue yet" }
    let entries = snapshot.bands.reduce(0) { $0 + $1.waiting }
    let items = snapshot.queues.values.reduce(0) { $0 + ($1.kind == .global ? 0 : $1.items + $1.heldBack) }
    let active = snapshot.bands.reduce(0) { $0 + $1.counts.active }
    let blocked = snapshot.threads.count(where: \.isBlocked)
    let suspended = snapshot.tasks.count { $0.state == .suspended }
    return "nothing is stuck: \(count(items, "item")) in queues and \(entriesWait(entries)) for a thread, "
      + "\(count(active, "worker")) active, \(count(blocked, "thread")) blocked"
      + (suspended > 0 ? ", \(count(suspended, "task")) suspended" : "")
  }

  /// The queues of a hierarchy that one thread holds are one cause: that with the most items stands for all.
  private mutating func joinHierarchies(_ words: Wording) {
    var joined: [Verdict] = []
    var causes: [[UInt32]: Int] = [:]
    for verdict in all {
      if verdict.kind == .heldQueue, let cause = causes[verdict.threads] {
        joined[cause].queues += verdict.queues
      } else {
        if verdict.kind == .heldQueue { causes[verdict.threads] = joined.count }
        joined.append(verdict)
      }
    }
    for index in joined.indices where joined[index].kind == .heldQueue && joined[index].queues.count > 1 {
      let others = joined[index].queues.dropFirst().map { queue in
        let info = snapshot.queues[queue]
        return "\(words.quoted(queue)) (\(count((info?.items ?? 0) + (info?.heldBack ?? 0), "item")))"
      }
      joined[index].details.append(.init(text: "for the same reason wait: \(others.joined(separator: ", "))"))
    }
    all = joined
  }

  private func entriesWait(_ number: Int) -> String {
    number == 1 ? "1 entry waits" : "\(number) entries wait"
  }

  /// Whether the cycle existed at one time, although it was read piece by piece while the process ran.
  ///
  /// A queue or a mutex had its owner after the threads were read. Each thread's wait began before it was read, and has
  /// not ended now. A thread that sleeps keeps what it holds, so all of them have been in these waits since the last was
  /// read.
  private func stillStands(_ cycle: [WaitGraph.Node]) -> Bool {
    let process = snapshot.process
    if process.isFrozen { return true }
    let areOwned = cycle.allSatisfy { node in
      guard case .queue(let address) = node, let queue = snapshot.queues[address] else { return true }
      return process.memory.word(queue.place.word).map { QueueWord(bits: $0).owner } == queue.word.owner
    }
    return areOwned
      && cycle.allSatisfy { node in
        guard case .thread(let id) = node, let thread = snapshot.thread(id) else { return true }
        if case .mutex(let address, let owner) = thread.wait,
          !FutexWait.isOwned(by: owner, at: address, in: process.memory)
        {
          return false
        }
        return thread.isStillAsleep(in: process)
      }
  }

  private func verdict(on crash: TargetProcess.Crash, _ words: Wording) -> Verdict {
    let thread = snapshot.thread(crash.thread)
    let name = thread.map(words.name) ?? "thread \(crash.thread)"
    let address = crash.address.map { " at the address 0x" + String($0, radix: 16) } ?? ""
    let item = thread?.frames.first.map { "\(name) ran an item of \(words.quoted($0.queue))" }
    return Verdict(
      kind: .crash, summary: "the process crashed: \(crash.name)\(address) in \(name)",
      details: thread.map { [.init(text: item ?? "\(name) ran no item", place: words.place($0))] } ?? [],
      threads: [crash.thread])
  }

  private func verdict(on held: ActorWatch.Held, _ words: Wording, _ taskWords: TaskWording) -> Verdict {
    let thread = snapshot.thread(held.thread)
    let holder = taskWords.task(on: held.thread).map(taskWords.name) ?? "thread \(held.thread)"
    let waiting = count(held.tasks.count, "task")
    let since = held.duration > 0 ? ", for at least \(Wording.time(held.duration))" : ""
    let details = thread.map {
      [
        Verdict.Detail(
          text: "\(words.name(of: $0)) \(words.activity(of: $0))\($0.blockedFor == nil ? since : "")",
          place: words.place($0))
      ]
    }
    let first = held.tasks.first.flatMap { task in
      taskWords.place(task).map {
        Verdict.Detail(text: "\(taskWords.name(task)) waits for the actor", place: $0)
      }
    }
    return Verdict(
      kind: .heldActor,
      summary: "\(holder) blocks its thread and holds \(taskWords.actor(held.executor)): "
        + "\(waiting) wait\(held.tasks.count == 1 ? "s" : "") behind it",
      details: (details ?? []) + (first.map { [$0] } ?? []), threads: [held.thread],
      tasks: held.tasks.prefix(64).map(\.id))
  }

  /// Tasks that wait with their threads for a semaphore or a group: all that run, or as many as may be active at once.
  private func blockedTasks(_ words: Wording) -> Verdict? {
    let process = snapshot.process
    let tasks = snapshot.tasks.filter { task in
      guard let thread = task.thread.flatMap({ snapshot.thread($0) }), !thread.hasTimeout else {
        return false
      }
      switch thread.wait {
      case .semaphore, .group, .workItem: break
      default: return false
      }
      // A moment is no cause. A core dump has no clock.
      guard process.core != nil || thread.blockedFor ?? 0 >= Self.leastOfBlockedTasks else { return false }
      return process.isStill || thread.isStillAsleep(in: process)
    }
    let running = snapshot.tasks.count { $0.state == .running }
    guard !tasks.isEmpty, tasks.count >= max(snapshot.width, 1) || tasks.count == running else { return nil }
    let threads = tasks.compactMap { $0.thread.flatMap { snapshot.thread($0) } }
    let since = threads.compactMap(\.blockedFor).min().map { ", for at least \(Wording.time($0))" } ?? ""
    return Verdict(
      kind: .blockedTasks,
      summary: tasks.count == 1
        ? "a task blocks its thread\(since)" : "\(tasks.count) tasks block their threads\(since)",
      details: words.grouped(threads).prefix(4).map { text, place, number in
        .init(text: "\(count(number, "task")) \(text)", place: place)
      },
      threads: threads.map(\.id), tasks: tasks.prefix(64).map(\.id))
  }

  private static let leastOfBlockedTasks: UInt64 = 1_000_000_000

  private func deadlock(_ cycle: [WaitGraph.Node], _ words: Wording) -> Verdict {
    var details: [Verdict.Detail] = []
    var threads: [UInt32] = []
    var queues: [UInt64] = []
    for node in cycle {
      switch node {
      case .queue(let queue): queues.append(queue)
      case .thread(let id): threads.append(id)
      }
    }
    for id in threads {
      guard let thread = snapshot.thread(id) else { continue }
      let held = queues.filter { snapshot.queues[$0]?.holders.contains(id) ?? false }.map { words.quoted($0) }
      let holds = held.isEmpty ? "" : "holds \(held.joined(separator: ", ")), "
      details.append(
        .init(
          text: "\(words.name(of: thread)) \(holds)waits for \(words.object(of: thread))",
          place: words.place(thread)))
    }
    let longest = threads.compactMap { snapshot.thread($0)?.blockedFor }.min()
    let since = longest.map { ", for \(Wording.time($0))" } ?? ""
    return Verdict(
      kind: .deadlock,
      summary: threads.count == 1
        ? "deadlock: a thread waits for itself\(since)"
        : "deadlock: \(count(threads.count, "thread")) wait for one another\(since)", details: details,
      queues: queues, threads: threads)
  }

  private func starvation(of band: BandInfo, _ words: Wording) -> Verdict? {
    let workers = snapshot.threads.filter { $0.role == .worker(band: band.name) }
    let blocked = workers.filter(\.isBlocked)
    let busy = workers.count { if case .idle = $0.wait { false } else { true } }
    guard band.waiting > 0, blocked.count >= max(snapshot.width, 1), blocked.count >= busy - max(2, busy / 20)
    else {
      return nil
    }
    // A pool whose items wait for short answers works.
    guard 4 * blocked.count(where: { standstill.sleeps($0.id) }) >= 3 * busy else { return nil }
    // A few blocked workers are soon replaced; many, or as many as the pool may have, are not.
    guard snapshot.poolThreads >= snapshot.cap || blocked.count >= 8 * max(snapshot.width, 1) else {
      return nil
    }
    var details: [Verdict.Detail] = []
    for (text, place, number) in words.grouped(blocked).prefix(3) {
      details.append(.init(text: "\(count(number, "thread")) \(text)", place: place))
    }
    let cap =
      snapshot.poolThreads >= snapshot.cap ? "; the pool has its limit of \(snapshot.cap) threads" : ""
    return Verdict(
      kind: .starvedPool,
      summary: "the pool is starved: \(count(blocked.count, "thread")) of \(busy) wait, and "
        + "\(entriesWait(band.waiting)) for a thread\(cap)",
      details: details, threads: blocked.map(\.id))
  }

  private func verdict(on queue: QueueInfo, _ words: Wording) -> Verdict? {
    let name = words.quoted(queue.address)
    let waiting = queue.items + queue.heldBack
    let waits = "\(count(waiting, "item")) wait\(waiting == 1 ? "s" : "")"
    if queue.word.isSuspended || queue.word.isInactive {
      guard waiting > 0, standstill.isSuspended(queue.address) else { return nil }
      let details = queue.waiters.compactMap { snapshot.thread($0) }.map {
        Verdict.Detail(text: "\(words.name(of: $0)) waits for it", place: words.place($0))
      }
      return queue.word.isSuspended
        ? Verdict(
          kind: .suspendedQueue,
          summary:
            "queue \(name) is suspended (\(queue.suspensions == 1 ? "once" : "\(queue.suspensions) times")) and "
            + "has not been resumed: \(waits)",
          details: details, queues: [queue.address], threads: queue.waiters)
        : Verdict(
          kind: .inactiveQueue, summary: "queue \(name) has not been activated: \(waits)", details: details,
          queues: [queue.address], threads: queue.waiters)
    }
    guard waiting > 0 else { return nil }
    let duration = watch.durations[queue.address]
    // Without a reason to call it stuck, a holder is at work.
    guard queue.holders.isEmpty || duration != nil else { return nil }
    let since =
      duration.flatMap { $0 > 0 ? ", at the same item for at least \(Wording.time($0))" : nil } ?? ""
    let holders = queue.holders.compactMap { snapshot.thread($0) }
    let details = holders.prefix(4).map {
      Verdict.Detail(text: "\(words.name(of: $0)) \(words.activity(of: $0))\(since)", place: words.place($0))
    }
    func made(_ kind: Verdict.Kind, _ summary: String) -> Verdict {
      Verdict(kind: kind, summary: summary, details: details, queues: [queue.address], threads: queue.holders)
    }
    switch queue.kind {
    case .concurrent where queue.label.hasPrefix("CONCOURSE_TASK_THREADS="):
      return made(.heldQueue, "tasks have no more threads than \(queue.label) gives them: \(waits)")
    case .concurrent where queue.word.owner != 0:
      return made(.barrier, "a barrier holds queue \(name): \(waits) behind it")
    case .concurrent where queue.barrierIsNext:
      let running = count(queue.word.readers, "item")
      return made(
        .barrier, "a barrier of queue \(name) waits for \(running) to end: \(waits), the barrier included")
    case .main:
      guard let main = snapshot.threads.first(where: { $0.role == .main }),
        !queue.holders.isEmpty || main.wait != .idle && (duration != nil || snapshot.process.isStopped)
      else { return nil }
      let isInItem = main.frames.contains { $0.queue == queue.address }
      let item = "an item holds the main queue: \(waits) behind it"
      let none = "the main thread does not serve the main queue: \(waits)"
      let activity = "the main thread \(words.activity(of: main))\(isInItem ? since : "")"
      return Verdict(
        kind: .mainQueue, summary: isInItem ? item : none,
        details: [.init(text: activity, place: words.place(main))],
        queues: [queue.address], threads: [main.id])
    case .serial, .workloop, .runLoop, .concurrent:
      guard !holders.isEmpty else { return nil }
      return made(.heldQueue, "an item holds queue \(name): \(waits) behind it")
    case .global: return nil
    }
  }
}
