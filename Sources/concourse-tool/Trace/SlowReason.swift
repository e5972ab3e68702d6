import ConcourseRecording

/// Why a recording took as long as it did, in sentences for people.
struct SlowReason {
  /// What the critical path hangs on.
  private(set) var sentence = ""
  /// The queue whose items waited longest, with the items that held it; nil if none waited.
  private(set) var contention: String?
  /// Blocked threads by place; nil if none was blocked.
  private(set) var blocked: String?

  private let recording: RecordedRun
  private let timeline: Timeline
  private let labels: [UInt64: [Int]]
  private let functions: (UInt64) -> String
  /// Less is not slow.
  private static let leastDuration: UInt64 = 1_000_000

  init(_ recording: RecordedRun, _ timeline: Timeline, functions: @escaping (UInt64) -> String) {
    self.recording = recording
    self.timeline = timeline
    self.functions = functions
    labels = recording.namesByQueue
    contention = mostContended()
    blocked = blockedThreads()
    sentence = reason()
  }

  /// The queues that run one item at a time: those that were made so, and of those without a kind none.
  private var serial: Set<UInt64> {
    Set(recording.names.filter { [1, 3, 4, 5].contains($0.kind) }.map(\.queue))
  }

  private func label(_ queue: UInt64) -> String {
    "\"\(recording.label(of: queue, at: timeline.start, labels))\""
  }

  private func duration(_ nanoseconds: UInt64) -> String { RecordingText.duration(nanoseconds) }

  private func items(_ count: Int) -> String { count == 1 ? "1 item" : "\(count) items" }

  private func times(_ count: Int) -> String { count == 1 ? "once" : "\(count) times" }

  // MARK: The critical path

  /// What a part of the path hangs on.
  private enum Part: Hashable {
    /// Items of a serial queue, one after the other.
    case queue(UInt64)
    /// One item, or items of one function.
    case function(UInt64)
    /// A wait, by its kind and object.
    case wait(kind: UInt64, object: UInt64)
    /// Items that were ready, and waited for a thread.
    case threads
    case delay
  }

  private func reason() -> String {
    let path = CriticalPath(timeline, serial: serial)
    var sums: [Part: (time: UInt64, count: Int, last: CriticalPath.Step)] = [:]
    let counts = path.steps.reduce(into: [UInt64: Set<Int>]()) { counts, step in
      if case .run(let item) = step.cause { counts[timeline.items[item].queue, default: []].insert(item) }
    }
    for step in path.steps {
      let part: Part
      switch step.cause {
      case .run(let item):
        let queue = timeline.items[item].queue
        let isChain = serial.contains(queue) && counts[queue]!.count > 1
        part = isChain ? .queue(queue) : .function(timeline.items[item].function)
      case .queued(let item):
        let queue = timeline.items[item].queue
        let waitsForItem = serial.contains(queue) && (counts[queue]?.count ?? 0) > 1
        part = waitsForItem ? .queue(queue) : .threads
      case .delayed: part = .delay
      case .waited(let wait):
        part = .wait(kind: timeline.waits[wait].kind, object: timeline.waits[wait].object)
      }
      let before = sums[part] ?? (0, 0, step)
      sums[part] = (before.time &+ step.duration, before.count + 1, step)
    }
    let total = max(timeline.end - timeline.start, 1)
    guard
      let (part, sum) = sums.max(by: {
        ($0.value.time, $0.value.last.end) < ($1.value.time, $1.value.last.end)
      }),
      sum.time >= Self.leastDuration, sum.time >= total / 10
    else {
      let length = path.steps.reduce(UInt64(0)) { $0 &+ $1.duration }
      return "Nothing was slow: the longest chain of items and waits took \(duration(length)) of "
        + "\(duration(total))."
    }
    let isWhole = sum.time >= total / 20 * 19
    let stretch =
      isWhole ? "The last \(duration(sum.time)) hang" : "\(duration(sum.time)) of \(duration(total)) hang"
    switch part {
    case .queue(let queue):
      let steps = path.steps.filter { belongs($0, to: queue) }
      let waiting = waiting(for: queue, from: steps.first!.start, to: steps.last!.end)
      return
        "\(stretch) on queue \(label(queue)): \(items(counts[queue]!.count)) of it ran one after the other"
        + (waiting.count == 0
          ? "."
          : "; while they ran, \(items(waiting.count)) waited \(duration(waiting.time)) in all.")
    case .function(let function):
      guard case .run(let item) = sum.last.cause else { return "" }
      let count = Set(
        path.steps.compactMap { step -> Int? in
          guard case .run(let item) = step.cause, timeline.items[item].function == function else {
            return nil
          }
          return item
        }
      ).count
      let name = functions(function)
      return "\(stretch) on \(items(count)) that ran: \(name) on queue \(label(timeline.items[item].queue))."
    case .wait(let kind, let object):
      guard case .waited(let wait) = sum.last.cause else { return "" }
      let name =
        kind <= 2
        ? "\(RecordedRun.wait(kind)) for queue \(label(object))" : "a wait (\(RecordedRun.wait(kind)))"
      let end =
        timeline.waits[wait].hasEnded
        ? (kind == 4 ? "; who ended it is not recorded." : ".") : "; it had not ended."
      return "\(stretch) on \(name): \(place(timeline.waits[wait])) waited there" + end
    case .threads:
      var (time, count) = (UInt64(0), 0)
      for item in timeline.items {
        guard let submission = item.submission.map({ timeline.submissions[$0] }), submission.time < item.start
        else {
          continue
        }
        (time, count) = (time &+ (item.start - submission.time), count + 1)
      }
      let most = timeline.running.map(\.value).max() ?? 0
      return "\(stretch) on free threads: \(items(count)) waited \(duration(time)) in all, while "
        + "\(most) thread\(most == 1 ? "" : "s") at most ran items at once."
    case .delay: return "\(stretch) on delays that the program asked for."
    }
  }

  private func belongs(_ step: CriticalPath.Step, to queue: UInt64) -> Bool {
    switch step.cause {
    case .run(let item), .queued(let item): timeline.items[item].queue == queue
    case .delayed, .waited: false
    }
  }

  /// The items and callers that waited for a queue in a time, and how long in all.
  private func waiting(for queue: UInt64, from start: UInt64 = 0, to end: UInt64 = .max) -> (
    time: UInt64, count: Int
  ) {
    var sum: (time: UInt64, count: Int) = (0, 0)
    func add(_ from: UInt64, _ to: UInt64) {
      let (from, to) = (max(from, start), min(to, end))
      if from < to { sum = (sum.time &+ (to - from), sum.count + 1) }
    }
    for submission in timeline.submissions where submission.queue == queue {
      if let item = submission.item { add(submission.time, timeline.items[item].start) }
    }
    for wait in timeline.waits where wait.kind <= 2 && wait.object == queue { add(wait.start, wait.end) }
    return sum
  }

  // MARK: Contention and blocked threads

  private func mostContended() -> String? {
    let serial = serial
    var sums: [UInt64: (time: UInt64, count: Int)] = [:]
    func add(_ queue: UInt64, _ start: UInt64, _ end: UInt64) {
      guard serial.contains(queue), start < end else { return }
      let before = sums[queue] ?? (0, 0)
      sums[queue] = (before.time &+ (end - start), before.count + 1)
    }
    for submission in timeline.submissions {
      if let item = submission.item { add(submission.queue, submission.time, timeline.items[item].start) }
    }
    for wait in timeline.waits where wait.kind <= 2 { add(wait.object, wait.start, wait.end) }
    guard let (queue, sum) = sums.max(by: { ($0.value.time, $0.key) < ($1.value.time, $1.key) }) else {
      return nil
    }
    var holders: [UInt64: (time: UInt64, count: Int)] = [:]
    for item in timeline.items where item.queue == queue {
      let before = holders[item.function] ?? (0, 0)
      holders[item.function] = (before.time &+ (item.end - item.start), before.count + 1)
    }
    let longest = holders.sorted { ($0.value.time, $0.key) > ($1.value.time, $1.key) }.prefix(3)
    let held = longest.map { "\(functions($0.key)) (\(times($0.value.count)), \(duration($0.value.time)))" }
    return "\(label(queue)): \(items(sum.count)) waited \(duration(sum.time)) in all"
      + (held.isEmpty ? "" : "; held by " + held.joined(separator: ", "))
  }

  /// Where a thread waits: its item, or its name.
  private func place(_ wait: Timeline.Wait) -> String {
    guard let item = wait.item.map({ timeline.items[$0] }) else {
      return "thread \(wait.thread)" + (recording.threads[wait.thread].map { " (\($0))" } ?? "")
    }
    return "\(functions(item.function)) on queue \(label(item.queue))"
  }

  private func blockedThreads() -> String? {
    var places: [String: (time: UInt64, count: Int)] = [:]
    for wait in timeline.waits where wait.start < wait.end {
      let key = "\(RecordedRun.wait(wait.kind)) in \(place(wait))"
      let before = places[key] ?? (0, 0)
      places[key] = (before.time &+ (wait.end - wait.start), before.count + 1)
    }
    let longest = places.sorted { ($0.value.time, $0.key) > ($1.value.time, $1.key) }.prefix(3)
    guard !longest.isEmpty else { return nil }
    return longest.map { "\($0.key) (\(times($0.value.count)), \(duration($0.value.time)))" }.joined(
      separator: "; ")
  }
}
