import ConcourseRecording

/// What a recording shows: items with their submissions, waits, and numbers over time.
struct Timeline {
  struct Item {
    var thread: UInt32
    var queue: UInt64
    var function: UInt64
    var start: UInt64
    /// The end of the recording if the item had not ended.
    var end: UInt64
    var hasEnded = false
    /// In `submissions`; nil if that was not recorded.
    var submission: Int?
    /// The number of items around it on its thread.
    var depth: Int
  }

  struct Submission {
    var time: UInt64
    /// When `thread` called: of a delayed submission, before its time had come.
    var call: UInt64
    /// The caller.
    var thread: UInt32
    var queue: UInt64
    var function: UInt64
    /// The item of the caller, in `items`.
    var submitter: Int?
    /// What it started as, in `items`.
    var item: Int?
  }

  struct Wait {
    var thread: UInt32
    /// As `Recording.wait` names it.
    var kind: UInt64
    var object: UInt64
    var start: UInt64
    var end: UInt64
    var hasEnded = false
    /// The innermost item that waits, in `items`.
    var item: Int?
  }

  /// A moment of a thread: a timer or a source.
  struct Mark {
    var time: UInt64
    var thread: UInt32
    var kind: RecordedEvent.Kind
    var object: UInt64
    var value: UInt64
  }

  /// A number from a time on.
  struct Level {
    var time: UInt64
    var value: Int
  }

  private(set) var items: [Item] = []
  private(set) var submissions: [Submission] = []
  private(set) var waits: [Wait] = []
  private(set) var marks: [Mark] = []
  /// The items that wait in each queue.
  private(set) var depths: [UInt64: [Level]] = [:]
  /// Threads that run an item and do not wait.
  private(set) var running: [Level] = []
  /// In the order of their first events.
  private(set) var threads: [UInt32] = []
  private(set) var queues: [UInt64] = []
  let start: UInt64
  let end: UInt64

  /// What a thread does at some point of the recording.
  private struct ThreadState {
    var items: [Int] = []
    var waits: [Int] = []
    var lastEvent: UInt64 = 0

    var isRunning: Bool { !items.isEmpty && waits.isEmpty }
  }

  private var states: [UInt32: ThreadState] = [:]
  private var runningNow = 0

  init(_ recording: RecordedRun) {
    start = recording.events.first?.time ?? recording.start
    end = max(recording.events.last?.time ?? recording.start, recording.end ?? 0)
    var isKnown: Set<UInt64> = []
    /// The submissions that have not started, by node.
    var pending: [UInt64: Int] = [:]
    /// The calls for delayed submissions whose time has not come, by node.
    var delayed: [UInt64: Submission] = [:]
    // Submissions before a gap are not counted as waiting: their starts may be missing.
    var counted = 0
    var gaps = recording.gaps[...]
    for event in recording.events {
      if let gap = gaps.first, gap.time <= event.time {
        while let gap = gaps.first, gap.time <= event.time {
          gaps.removeFirst()
          endAll(of: gap.thread, at: event.time)
        }
        counted = submissions.count
        delayed = [:]
        for (queue, levels) in depths where levels.last!.value > 0 {
          depths[queue]!.append(Level(time: event.time, value: 0))
        }
      }
      if states[event.thread] == nil {
        states[event.thread] = ThreadState()
        threads.append(event.thread)
      }
      states[event.thread]!.lastEvent = event.time
      let wasRunning = states[event.thread]!.isRunning
      // Ends that were lost: a thread that sleeps records nothing else, and one that parks is in no item.
      if event.kind != .waitEnded { endWaits(of: event.thread, at: event.time) }
      if event.kind == .parked || event.kind == .threadEnded {
        endItems(of: event.thread, from: 0, at: event.time)
      }
      switch event.kind {
      case .submitted:
        if isKnown.insert(event.object).inserted { queues.append(event.object) }
        var submission = submission(event)
        if let call = delayed.removeValue(forKey: event.node), call.function == event.function {
          (submission.call, submission.thread) = (call.call, call.thread)
          submission.submitter = call.submitter
        }
        submissions.append(submission)
        // The start of an older item with that node was lost.
        if let older = pending.updateValue(submissions.count - 1, forKey: event.node), older >= counted {
          change(submissions[older].queue, by: -1, at: event.time)
        }
        change(event.object, by: 1, at: event.time)
      case .scheduled: delayed[event.node] = submission(event)
      case .started:
        if isKnown.insert(event.object).inserted { queues.append(event.object) }
        let submission = event.node == 0 ? nil : pending.removeValue(forKey: event.node)
        // Not the queue: the classes of global queues have several objects each.
        let isSame = submission.map { RecordedJob.isSame(submissions[$0].function, event.function) } ?? false
        items.append(
          Item(
            thread: event.thread, queue: event.object, function: event.function, start: event.time, end: end,
            submission: isSame ? submission : nil, depth: states[event.thread]!.items.count))
        if isSame {
          submissions[submission!].item = items.count - 1
        }
        if let submission, submission >= counted {
          change(submissions[submission].queue, by: -1, at: event.time)
        }
        states[event.thread]!.items.append(items.count - 1)
      case .ended:
        // Ends without a start are of items that began before the recording.
        if let place = states[event.thread]!.items.lastIndex(where: {
          items[$0].queue == event.object && items[$0].function == event.function
        }) {
          endItems(of: event.thread, from: place, at: event.time)
        }
      case .waitBegan:
        waits.append(
          Wait(
            thread: event.thread, kind: event.node, object: event.object, start: event.time, end: end,
            item: states[event.thread]!.items.last))
        states[event.thread]!.waits.append(waits.count - 1)
      case .waitEnded:
        if let wait = states[event.thread]!.waits.popLast() {
          waits[wait].end = event.time
          waits[wait].hasEnded = true
        }
      case .timer, .source:
        marks.append(
          Mark(
            time: event.time, thread: event.thread, kind: event.kind, object: event.object,
            value: event.function))
      case .threadBegan, .threadEnded, .made, .parked, .woken, .taskName: break
      }
      noteRunning(event.thread, before: wasRunning, at: event.time)
    }
  }

  private mutating func noteRunning(_ thread: UInt32, before wasRunning: Bool, at time: UInt64) {
    let isRunning = states[thread]!.isRunning
    guard isRunning != wasRunning else { return }
    runningNow += isRunning ? 1 : -1
    running.append(Level(time: time, value: runningNow))
  }

  private func submission(_ event: RecordedEvent) -> Submission {
    Submission(
      time: event.time, call: event.time, thread: event.thread, queue: event.object, function: event.function,
      submitter: states[event.thread]!.items.last)
  }

  private mutating func endItems(of thread: UInt32, from first: Int, at time: UInt64) {
    for item in states[thread]!.items[first...] { (items[item].end, items[item].hasEnded) = (time, true) }
    states[thread]!.items.removeSubrange(first...)
  }

  /// Events of the thread are missing, perhaps the ends of what it was in. A later end may be that of another item.
  private mutating func endAll(of thread: UInt32, at time: UInt64) {
    guard let state = states[thread] else { return }
    endWaits(of: thread, at: state.lastEvent)
    endItems(of: thread, from: 0, at: state.lastEvent)
    noteRunning(thread, before: state.isRunning, at: time)
  }

  private mutating func endWaits(of thread: UInt32, at time: UInt64) {
    for wait in states[thread]!.waits { (waits[wait].end, waits[wait].hasEnded) = (time, true) }
    states[thread]!.waits = []
  }

  private mutating func change(_ queue: UInt64, by difference: Int, at time: UInt64) {
    let before = depths[queue]?.last?.value ?? 0
    depths[queue, default: []].append(Level(time: time, value: max(before + difference, 0)))
  }

  /// The items of a queue in lanes, so that those of one lane do not overlap.
  func lanes(of queue: UInt64, _ itemsByQueue: [UInt64: [Int]]) -> [[Int]] {
    var lanes: [[Int]] = []
    for item in itemsByQueue[queue] ?? [] {
      if let lane = lanes.firstIndex(where: { items[$0.last!].end <= items[item].start }) {
        lanes[lane].append(item)
      } else {
        lanes.append([item])
      }
    }
    return lanes
  }

  /// The items of each queue, in the order of their starts.
  var itemsByQueue: [UInt64: [Int]] {
    var result: [UInt64: [Int]] = [:]
    for index in items.indices { result[items[index].queue, default: []].append(index) }
    return result
  }
}

extension RecordedRun {
  /// What a thread waits for: the label of a queue, or an address.
  func object(of wait: Timeline.Wait, _ labels: [UInt64: [Int]]) -> String {
    wait.kind <= 2 ? label(of: wait.object, at: wait.start, labels) : "0x" + String(wait.object, radix: 16)
  }
}
