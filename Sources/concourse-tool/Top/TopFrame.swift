import ConcourseRecording

/// What the view shows of one interval: the numbers of the events, and the state of the engine at its end.
struct TopFrame {
  struct Queue {
    var id: UInt64
    var label: String
    var kind: String
    var activity = QueueActivity()
    /// Items that wait; nil if unknown.
    var depth: Int?
    var state = ""
    /// Class, target, width: what does not change.
    var properties: [String] = []
    var isBusy = false
    /// Whether it needs a look: suspended with items, or held by a thread that waits.
    var isAlarming = false

    var name: String { label.isEmpty ? "0x" + String(id, radix: 16) : label }
  }

  struct Blocked {
    var threads: [UInt32]
    var role: String
    var text: String
    /// The queue of the item that it is in.
    var item: String?
    var blockedFor: UInt64?
  }

  struct Event {
    /// Its kind and descriptor, or how many of a kind.
    var what: String
    /// Quoted.
    var queue: String?
    var count: Int
    var detail: String

    var name: String { what + (queue.map { " on \($0)" } ?? "") }
  }

  struct Pool {
    var width = 0
    var limit = 0
    var threads = 0
    var active = 0
    var blocked = 0
    var parked = 0
    var waiting = 0
  }

  var process: Int32
  var program: String
  /// The time of day.
  var clock = ""
  var wall: UInt64 = 0
  var interval: EventInterval
  var pool: Pool?
  var queues: [Queue] = []
  var blocked: [Blocked] = []
  var events: [Event] = []
  /// nil until they have been read for the first time.
  var tasks: TaskSummary?
  /// A deadlock, a starved pool, a suspended queue, or tasks that are stalled, in a sentence.
  var alarm: String?
  /// Started items a second in the last intervals, by queue.
  var history: [UInt64: [Double]] = [:]

  static let historyLength = 60
  /// Intervals for which a queue without work stays in the view.
  private static let recent = 5
  /// More sources of a kind on a queue are one row.
  private static let mostAlike = 4

  init(
    process: Int32, program: String, interval: EventInterval, names: [UInt64: RecordedName],
    snapshot: EngineSnapshot?, earlier: [UInt64: [Double]] = [:]
  ) {
    (self.process, self.program, self.interval) = (process, program, interval)
    takeQueues(names, snapshot)
    if let snapshot {
      takePool(snapshot)
      takeBlocked(snapshot)
    }
    takeEvents(names, snapshot)
    for index in queues.indices {
      let queue = queues[index]
      let rates = (earlier[queue.id] ?? []) + [interval.rate(queue.activity.started)]
      history[queue.id] = Array(rates.suffix(Self.historyLength))
      // Rows that come and go are hard to read.
      if rates.suffix(Self.recent).contains(where: { $0 > 0 }) { queues[index].isBusy = true }
    }
  }

  private mutating func takeQueues(_ names: [UInt64: RecordedName], _ snapshot: EngineSnapshot?) {
    for (address, activity) in interval.queues {
      let name = names[address]
      var queue = Queue(
        id: address, label: name?.text ?? "",
        kind: name.flatMap { QueueKind(rawValue: $0.kind)?.name } ?? "queue")
      queue.activity = activity
      queue.isBusy =
        activity.submitted + activity.started + activity.ended + activity.waiting > 0 || activity.busy > 0
      queue.depth = activity.waiting
      queues.append(queue)
    }
    guard let snapshot else { return }
    let words = Wording(snapshot)
    let places = Dictionary(uniqueKeysWithValues: queues.indices.map { (queues[$0].id, $0) })
    let served = Set(snapshot.sources.map(\.queue))
    for info in snapshot.queues.values {
      var place = places[info.address]
      if place == nil {
        // What waits there is queues, if not items.
        if info.kind == .global { continue }
        queues.append(Queue(id: info.address, label: info.label, kind: info.kind.name))
        place = queues.count - 1
      }
      if queues[place!].label.isEmpty { queues[place!].label = info.label }
      queues[place!].kind = info.kind.name
      queues[place!].depth = Self.depth(
        of: info, queues[place!].activity, isServed: served.contains(info.address))
      queues[place!].isBusy = queues[place!].isBusy || info.word.isOccupied || queues[place!].depth ?? 0 > 0
      queues[place!].state = info.kind == .global ? "" : info.state
      queues[place!].properties = Self.properties(of: info, snapshot, words)
      queues[place!].isAlarming =
        (info.word.isSuspended && info.items + info.heldBack > 0)
        || info.holders.contains { snapshot.thread($0).map { $0.isBlocked } ?? false }
    }
  }

  /// The recording knows exactly what waits, unless something was submitted before it began. The list of a queue that
  /// works is only half readable from outside: items that have run may still be linked.
  private static func depth(of info: QueueInfo, _ activity: QueueActivity, isServed: Bool) -> Int? {
    if activity.started > 0 && activity.unknownStarts == 0 || info.kind == .global { return activity.waiting }
    if info.kind.isLane && !info.word.isOccupied { return activity.waiting }
    // The handler of a source has no submission.
    if activity.started > 0 && isServed { return activity.submitted > 0 ? activity.waiting : nil }
    return info.items + info.heldBack
  }

  private static func properties(of info: QueueInfo, _ snapshot: EngineSnapshot, _ words: Wording) -> [String]
  {
    var parts = [info.kind.name]
    if info.level > 0 { parts.append("class \(LevelNames.name(info.level))") }
    if let width = info.width { parts.append("width \(width)") }
    if let target = snapshot.queues[info.target], target.kind != .global {
      parts.append("target \(words.quoted(target.address))")
    }
    return parts
  }

  private mutating func takePool(_ snapshot: EngineSnapshot) {
    var pool = Pool(width: snapshot.width, limit: snapshot.cap, threads: snapshot.poolThreads)
    for band in snapshot.bands {
      pool.active += band.counts.active
      pool.parked += band.counts.parked
      pool.blocked += max(0, band.counts.threads - band.counts.active - band.counts.parked)
    }
    // Queues that wait for a thread, and items of global queues.
    for queue in snapshot.queues.values where queue.word.isEnqueued && queue.word.owner == 0 {
      if snapshot.queues[queue.target]?.kind == .global { pool.waiting += 1 }
    }
    pool.waiting += queues.reduce(0) { $0 + ($1.kind == QueueKind.global.name ? $1.activity.waiting : 0) }
    self.pool = pool
  }

  /// Threads that wait in the engine, or in an item. Those that do the same are one row.
  private mutating func takeBlocked(_ snapshot: EngineSnapshot) {
    let words = Wording(snapshot)
    var places: [String: Int] = [:]
    let threads = snapshot.threads.filter { thread in
      if case .call = thread.wait { return !thread.frames.isEmpty }
      return thread.isBlocked
    }
    for thread in threads.sorted(by: { ($0.blockedFor ?? 0, $1.id) > ($1.blockedFor ?? 0, $0.id) }) {
      let verb: String
      switch thread.wait {
      case .call: verb = "in "
      case .turn, .service: verb = "waits in sync for "
      default: verb = "waits for "
      }
      var text = verb + words.object(of: thread)
      if thread.hasTimeout { text += ", with a time-out" }
      let item = thread.frames.first.map { words.quoted($0.queue) }
      let role: String
      switch thread.role {
      case .main: role = "main"
      case .worker: role = "pool"
      case .monitor, .events, .other: role = thread.thread.name ?? "thread"
      }
      let key = "\(role) \(text) \(item ?? "")"
      if let place = places[key] {
        blocked[place].threads.append(thread.id)
      } else {
        places[key] = blocked.count
        blocked.append(
          Blocked(
            threads: [thread.id], role: role, text: text, item: item,
            blockedFor: thread.blockedFor))
      }
    }
  }

  /// Sources of one kind on one queue.
  private struct Alike: Hashable {
    var kind: String
    var queue: UInt64
  }

  private mutating func takeEvents(_ names: [UInt64: RecordedName], _ snapshot: EngineSnapshot?) {
    var rest = interval.events
    var alike: [Alike: [Event]] = [:]
    func quoted(_ queue: UInt64) -> String? {
      guard queue != 0, names[queue]?.isGlobal != true else { return nil }
      if let snapshot, let info = snapshot.queues[queue] {
        return info.kind == .global ? nil : Wording(snapshot).quoted(queue)
      }
      return "\"\(names[queue]?.text ?? "")\""
    }
    for source in snapshot?.sources ?? [] {
      // Of a timer both have events.
      let count = max(
        rest.removeValue(forKey: source.address) ?? 0, rest.removeValue(forKey: source.backend) ?? 0)
      guard count > 0 || (source.isActive && !source.isCancelled) else { continue }
      var name = source.kind
      if ["read", "write", "fileSystemObject"].contains(source.kind) {
        name += " of descriptor \(source.handle)"
      }
      if source.kind == "signal" || source.kind == "process" { name += " \(source.handle)" }
      var detail = ""
      // Of one that fires often it would be too old.
      if count == 0, let due = source.dueIn { detail = Self.due(due) }
      if source.suspensions > 0 { detail = "suspended" }
      if source.handlerThread != 0 { detail = "thread \(source.handlerThread) runs its handler" }
      alike[Alike(kind: source.kind, queue: source.queue), default: []].append(
        Event(what: name, queue: quoted(source.queue), count: count, detail: detail))
    }
    for (object, count) in rest {
      let address = "0x" + String(object, radix: 16)
      if let origin = interval.origins[object] {
        // It was gone before the look.
        alike[Alike(kind: origin.kind, queue: origin.queue), default: []].append(
          Event(what: origin.kind, queue: quoted(origin.queue), count: count, detail: "ended"))
      } else if let text = snapshot?.queues[object]?.label ?? names[object]?.text {
        let queue = text.isEmpty ? address : "\"\(text)\""
        events.append(Event(what: "asyncAfter", queue: queue, count: count, detail: ""))
      } else {
        events.append(Event(what: "timer or source " + address, count: count, detail: ""))
      }
    }
    for (key, rows) in alike {
      guard rows.count > Self.mostAlike else {
        events += rows
        continue
      }
      let what = "\(rows.count) " + (key.kind == "timer" ? "timers" : "\(key.kind) sources")
      let suspended = rows.count { $0.detail == "suspended" }
      events.append(
        Event(
          what: what, queue: rows[0].queue, count: rows.reduce(0) { $0 + $1.count },
          detail: suspended > 0 ? "\(suspended) suspended" : ""))
    }
    events.sort { ($0.count, $1.name) > ($1.count, $0.name) }
  }

  static func due(_ nanoseconds: Int64) -> String {
    let time = RecordingText.duration(nanoseconds.magnitude)
    return nanoseconds < 0 ? "overdue by \(time)" : "due in \(time)"
  }

  // MARK: Sums

  var started: Int { queues.reduce(0) { $0 + $1.activity.started } }
  var submitted: Int { queues.reduce(0) { $0 + $1.activity.submitted } }
  var blockedThreads: Int { blocked.reduce(0) { $0 + $1.threads.count } }
  /// Threads that ran items, on average.
  var parallelism: Double { Double(interval.running) / Double(interval.nanoseconds) }
}
