/// What happened in one interval.
package struct EventInterval {
  /// Uptime in nanoseconds.
  package var start: UInt64
  package var end: UInt64
  package var queues: [UInt64: QueueActivity] = [:]
  /// Timers and sources, by their addresses; of a delayed submission the queue.
  package var events: [UInt64: Int] = [:]
  /// What is known of a source also when it is gone.
  package var origins: [UInt64: SourceOrigin] = [:]
  /// The items of each queue that run at its end.
  package var open: [UInt64: Int] = [:]
  /// The sum of the times during which a thread ran an item and did not wait.
  package var running: UInt64 = 0
  package var parked = 0
  package var woken = 0
  package var made = 0
  /// Events that were overwritten before they were read.
  package var lost: UInt64 = 0
  /// How often recording was off meanwhile.
  package var pauses = 0

  package var nanoseconds: UInt64 { max(end &- start, 1) }

  package func rate(_ count: Int) -> Double { Double(count) * 1e9 / Double(nanoseconds) }
}

/// What happened on a queue.
package struct QueueActivity {
  package var submitted = 0
  package var started = 0
  package var ended = 0
  /// Submitted while the process was watched, and not started at the end of the interval.
  package var waiting = 0
  /// Starts whose submission is not known: of a source's handler, or from before.
  package var unknownStarts = 0
  /// From submission to start.
  package var wait = DurationHistogram()
  package var run = DurationHistogram()
  /// Calls of `sync` that slept.
  package var syncWait = DurationHistogram()
  /// The sum of the times during which its items ran within the interval.
  package var busy: UInt64 = 0
  /// By the address of their code.
  package var functions: [UInt64: DurationHistogram] = [:]

  package init() {}
}

/// Makes numbers out of events, in parts: an item may be submitted in one interval and end in another.
package struct EventStatistics {
  private struct OpenItem {
    var queue: UInt64
    var function: UInt64
    var start: UInt64
  }

  private struct OpenWait {
    var kind: UInt64
    var object: UInt64
    var start: UInt64
  }

  private struct ThreadState {
    var items: [OpenItem] = []
    var waits: [OpenWait] = []
    /// Since when it has run an item without waiting.
    var runsSince: UInt64?
  }

  private struct Submission {
    var time: UInt64
    var queue: UInt64
    var function: UInt64
  }

  private var interval: EventInterval
  private var threads: [UInt32: ThreadState] = [:]
  /// The submissions that have not started, by node.
  private var pending: [UInt64: Submission] = [:]
  /// The number of those of each queue.
  private var waiting: [UInt64: Int] = [:]
  /// Events after the limit of the last part.
  private var later: [RecordedEvent] = []
  private var lost: UInt64 = 0
  /// The times of events before which others are missing, and the ends of pauses, of those that are not counted yet.
  private var gaps: [UInt64] = []
  private var lostNames: UInt64 = 0
  /// By address. In the interval in which the memory of a queue becomes that of another one, the earlier queue has a
  /// number in place of its address, from `formerQueues` on.
  package private(set) var names: [UInt64: RecordedName] = [:]
  /// Names from later on than the events counted so far, in the order of time.
  private var laterNames: [RecordedName] = []
  private var formers: UInt64 = 0
  package static let formerQueues: UInt64 = 1 << 63
  /// The objects of one global queue are one queue.
  private var globals: [String: UInt64] = [:]

  /// The names of tasks, and for each name one task of this interval.
  private var tasks: [UInt64: String] = [:]
  private var firstTasks: [String: UInt64] = [:]

  /// - Parameters:
  ///   - lost: The events of the recording that were lost before.
  ///   - names: The names that earlier parts of the recording have given.
  package init(start: UInt64, lost: UInt64 = 0, names: [RecordedName] = []) {
    interval = EventInterval(start: start, end: start)
    self.lost = lost
    for name in names { take(name) }
  }

  /// - Parameter limit: Only the events before this time are taken now. The rings are read one after the other, so of
  ///   the latest events some are missing: perhaps the submission of an item that has started.
  package mutating func add(_ recording: RecordedRun, before limit: UInt64) {
    if formers > 0 && interval.queues.isEmpty {
      // Of the interval before.
      for former in 0..<formers { names[Self.formerQueues + former] = nil }
      formers = 0
    }
    laterNames += recording.names
    tasks = recording.tasks
    if recording.lost > lost {
      interval.lost += recording.lost - lost
      lost = recording.lost
      forget()
    }
    var events = later + recording.events
    if !later.isEmpty {
      let order = events.indices.sorted { (events[$0].time, $0) < (events[$1].time, $1) }
      events = order.map { events[$0] }
    }
    later = Array(events[events.partitioned(before: limit)...])
    interval.pauses += recording.pauses.count
    gaps = (gaps + recording.gaps.map(\.time) + recording.pauses).sorted()
    for event in events.dropLast(later.count) {
      takeNames(upTo: event.time)
      passGaps(upTo: event.time)
      add(event)
    }
    takeNames(upTo: limit)
    passGaps(upTo: limit)
    if recording.lostNames != lostNames {
      lostNames = recording.lostNames
      // A later queue at such an address has had no room for its name. A global queue is never freed.
      names = names.filter { $1.isGlobal || !RecordedRun.isUnnamed($0, recording.unnamed) }
    }
  }

  /// Ends the interval and begins the next.
  package mutating func finish(at time: UInt64) -> EventInterval {
    let end = max(time, interval.start)
    interval.end = end
    for thread in threads.keys {
      for item in threads[thread]!.items where item.start < end {
        interval.queues[item.queue, default: QueueActivity()].busy &+= end - max(item.start, interval.start)
      }
      if let since = threads[thread]!.runsSince, since < end {
        interval.running &+= end - max(since, interval.start)
      }
    }
    interval.open = items.running
    for queue in interval.open.keys { _ = interval.queues[queue, default: QueueActivity()] }
    for (queue, count) in waiting { interval.queues[queue, default: QueueActivity()].waiting = count }
    defer { (interval, firstTasks) = (EventInterval(start: end, end: end), [:]) }
    return interval
  }

  /// How many items of each queue wait, and how many run.
  package var items: (waiting: [UInt64: Int], running: [UInt64: Int]) {
    var running: [UInt64: Int] = [:]
    for thread in threads.values { for item in thread.items { running[item.queue, default: 0] += 1 } }
    return (waiting, running)
  }

  /// A queue is named before its first event.
  private mutating func takeNames(upTo time: UInt64) {
    guard let first = laterNames.first, first.time <= time else { return }
    let count = laterNames.firstIndex { $0.time > time } ?? laterNames.count
    for name in laterNames[..<count] { take(name) }
    laterNames.removeFirst(count)
  }

  private mutating func take(_ name: RecordedName) {
    if let former = names[name.queue], former.text != name.text || former.kind != name.kind,
      let activity = interval.queues.removeValue(forKey: name.queue)
    {
      let number = Self.formerQueues + formers
      formers += 1
      (names[number], interval.queues[number]) = (former, activity)
    }
    names[name.queue] = name
    if name.isGlobal && globals[name.text] == nil { globals[name.text] = name.queue }
  }

  /// After a loss or a pause nothing is certain about what was open: a missing end would make an item run for ever.
  private mutating func forget() {
    threads = [:]
    pending = [:]
    waiting = [:]
  }

  private mutating func passGaps(upTo time: UInt64) {
    guard let gap = gaps.first, gap <= time else { return }
    gaps.removeAll { $0 <= time }
    forget()
  }

  private mutating func changeWaiting(_ queue: UInt64, by difference: Int) {
    let count = (waiting[queue] ?? 0) + difference
    waiting[queue] = count == 0 ? nil : count
  }

  /// One code for the jobs of equal priority whose tasks have the same name, and one for those without a name: there
  /// may be millions of tasks.
  private mutating func common(_ code: UInt64) -> UInt64 {
    guard var job = RecordedJob(code) else { return code }
    let name = tasks[job.task]
    job.task = name.flatMap { firstTasks[$0] } ?? (name == nil || firstTasks.count >= 1000 ? 0 : job.task)
    if let name, job.task != 0 { firstTasks[name] = job.task }
    return job.code
  }

  private func queue(_ address: UInt64) -> UInt64 {
    guard let name = names[address], name.isGlobal else { return address }
    return globals[name.text] ?? address
  }

  private mutating func add(_ event: RecordedEvent) {
    var thread = threads.removeValue(forKey: event.thread) ?? ThreadState()
    switch event.kind {
    case .submitted:
      let queue = queue(event.object)
      let new = Submission(time: event.time, queue: queue, function: event.function)
      // An earlier one of the same node has started without an event.
      if let old = pending.updateValue(new, forKey: event.node) { changeWaiting(old.queue, by: -1) }
      changeWaiting(queue, by: 1)
      interval.queues[queue, default: QueueActivity()].submitted += 1
    case .started:
      let queue = queue(event.object)
      let submission = event.node == 0 ? nil : pending.removeValue(forKey: event.node)
      interval.queues[queue, default: QueueActivity()].started += 1
      if let submission { changeWaiting(submission.queue, by: -1) }
      if let submission, RecordedJob.isSame(submission.function, event.function) {
        interval.queues[queue]!.wait.add(event.time.since(submission.time))
      } else {
        interval.queues[queue]!.unknownStarts += 1
      }
      thread.items.append(OpenItem(queue: queue, function: event.function, start: event.time))
    case .ended:
      let queue = queue(event.object)
      if let place = thread.items.lastIndex(where: { $0.queue == queue && $0.function == event.function }) {
        let item = thread.items[place]
        thread.items.removeSubrange(place...)
        let duration = event.time.since(item.start)
        interval.queues[queue, default: QueueActivity()].run.add(duration)
        let function = common(item.function)
        interval.queues[queue]!.functions[function, default: DurationHistogram()].add(duration)
        interval.queues[queue]!.busy &+= event.time.since(max(item.start, interval.start))
      }
      interval.queues[queue, default: QueueActivity()].ended += 1
    case .waitBegan:
      thread.waits.append(OpenWait(kind: event.node, object: event.object, start: event.time))
    case .waitEnded:
      if let wait = thread.waits.popLast(), wait.kind == event.node, wait.kind <= 2 {
        interval.queues[queue(wait.object), default: QueueActivity()].syncWait.add(
          event.time.since(wait.start))
      }
    case .timer: interval.events[event.object, default: 0] += 1
    case .source:
      interval.events[event.object, default: 0] += 1
      if let origin = SourceOrigin(event.node) { interval.origins[event.object] = origin }
    case .made: interval.made += 1
    case .woken: interval.woken += 1
    case .parked:
      interval.parked += 1
      // A worker parks between items.
      thread.items = []
      thread.waits = []
    case .taskName, .scheduled: break
    case .threadBegan, .threadEnded:
      thread.items = []
      thread.waits = []
    }
    if thread.items.isEmpty || !thread.waits.isEmpty {
      if let since = thread.runsSince { interval.running &+= event.time.since(max(since, interval.start)) }
      thread.runsSince = nil
    } else if thread.runsSince == nil {
      thread.runsSince = event.time
    }
    if event.kind != .threadEnded { threads[event.thread] = thread }
  }
}

extension UInt64 {
  /// 0 if `start` is later: times of two threads may be a little apart.
  fileprivate func since(_ start: UInt64) -> UInt64 { self > start ? self - start : 0 }
}

extension [RecordedEvent] {
  /// The index of the first event at `limit` or later. The events are sorted.
  fileprivate func partitioned(before limit: UInt64) -> Int {
    var (low, high) = (0, count)
    while low < high {
      let middle = (low + high) / 2
      if self[middle].time < limit { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
