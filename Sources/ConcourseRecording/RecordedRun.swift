/// What a process has recorded.
package struct RecordedRun {
  package let process: UInt32
  /// The uptime, and the time since 1970, when the recording began; nanoseconds.
  package let start: UInt64
  package let wall: UInt64
  /// In the order of time.
  package var events: [RecordedEvent]
  /// The names of threads.
  package var threads: [UInt32: String]
  /// In the order in which they were given.
  package var names: [RecordedName]
  package var modules: [RecordedModule]
  /// The names of tasks of Swift Concurrency, by number, as far as they are known.
  package var tasks: [UInt64: String] = [:]
  /// Events that are missing: overwritten before they were read; of threads for which there was no room; damaged.
  package var overwritten: UInt64 = 0
  package var withoutRing: UInt64 = 0
  package var unreadable: UInt64 = 0
  /// Events before which others of the same thread are missing, in order.
  package var gaps: [RecordedGap] = []
  package var lostNames: UInt64 = 0
  /// A bit for each 16 bytes of memory: a queue there has no name, also if an older queue there had one.
  package var unnamed: [UInt8] = []
  /// When a reader found that recording had been off, in order.
  package var pauses: [UInt64] = []
  /// The uptime until which the process was watched; nil if only its events say so.
  package var end: UInt64?
}

extension RecordedRun {
  /// One that was not read from a process: events of a program, on one queue.
  package init(
    events: [RecordedEvent], threads: [UInt32: String], queue: UInt64, label: String, program: String
  ) {
    self.init(
      process: 0, start: events.first?.time ?? 0, wall: 0, events: events, threads: threads,
      names: [RecordedName(queue: queue, time: 0, target: 0, kind: 1, text: label)],
      modules: [RecordedModule(base: 0, path: program)])
  }
}

package struct RecordedGap: Equatable {
  /// Of the first event after the gap.
  package var time: UInt64
  package var thread: UInt32
}

package struct RecordedEvent: Equatable {
  /// The numbers of `Recording.Event` in ConcourseRuntime.
  package enum Kind: UInt8 {
    case threadBegan = 1
    case threadEnded, submitted, started, ended, waitBegan, waitEnded, made, parked, woken, timer, source
    /// A part of a task's name: `RecordingReader` keeps it in `tasks`.
    case taskName
    /// A delayed submission is asked for.
    case scheduled
  }

  /// Uptime in nanoseconds.
  package var time: UInt64
  package var thread: UInt32
  package var kind: Kind
  /// The item's node; of a wait its kind.
  package var node: UInt64
  /// The queue of an item, or what else the event is about.
  package var object: UInt64
  /// The code of an item; of a job of Swift Concurrency, see `RecordedJob`.
  package var function: UInt64

  package init(time: UInt64, thread: UInt32, kind: Kind, node: UInt64, object: UInt64, function: UInt64) {
    (self.time, self.thread, self.kind) = (time, thread, kind)
    (self.node, self.object, self.function) = (node, object, function)
  }
}

/// What stands in place of the code of a job: the highest bit, its priority from bit 48 on, and the number of its task.
package struct RecordedJob: Equatable {
  package var priority: UInt8
  /// 0: the job of an actor, or another one that belongs to no task.
  package var task: UInt64

  /// nil if it is the code of another item.
  package init?(_ code: UInt64) {
    guard code >> 63 == 1 else { return nil }
    (priority, task) = (UInt8(truncatingIfNeeded: code >> 48), code & (1 << 48 - 1))
  }

  package init(priority: UInt8, task: UInt64) { (self.priority, self.task) = (priority, task) }

  package var code: UInt64 { 1 << 63 | UInt64(priority) << 48 | task }

  /// Whether two codes are of one item. The priority of a job may rise between its submission and its start.
  package static func isSame(_ code: UInt64, _ other: UInt64) -> Bool {
    guard let job = RecordedJob(code), let otherJob = RecordedJob(other) else { return code == other }
    return job.task == otherJob.task
  }

  /// As `TaskPriority` names them.
  package func name(_ task: String?) -> String {
    let names: [UInt8: String] = [
      9: "background", 17: "low", 21: "medium", 25: "high", 33: "user interactive",
    ]
    let level = priority == 0 ? "no priority" : names[priority] ?? "priority \(priority)"
    if let task { return "task \"\(task)\" (\(level))" }
    return (self.task == 0 ? "Swift job" : "task \(self.task)") + " (\(level))"
  }
}

/// The node of a source's event: the number of its kind from bit 48 on, and below it the address of its queue.
package struct SourceOrigin: Equatable {
  package let kind: String
  package let queue: UInt64

  /// nil of an older library, which records none.
  package init?(_ node: UInt64) {
    let number = Int(node >> 48)
    guard number < Self.kinds.count, node & (1 << 48 - 1) != 0 else { return nil }
    (kind, queue) = (Self.kinds[number], node & (1 << 48 - 1))
  }

  /// The cases of `SourceKind` in ConcourseEvents.
  private static let kinds = [
    "timer", "signal", "read", "write", "process", "fileSystemObject", "memoryPressure", "userDataAdd",
    "userDataOr", "userDataReplace",
  ]
}

/// A program or library in the recorded process.
package struct RecordedModule: Equatable {
  /// Added to the addresses in the file.
  package var base: UInt64
  package var path: String
}

extension RecordedRun {
  /// What a thread waited for: the numbers of `Recording.Wait` in ConcourseRuntime.
  package static func wait(_ number: UInt64) -> String {
    let names = [
      "sync", "sync on the main queue", "group", "semaphore", "work item", "once", "parallel loop",
      "source cancellation",
      "opening a file", "reading", "writing",
    ]
    return number >= 1 && number <= names.count ? names[Int(number) - 1] : "wait \(number)"
  }

  /// The label of a queue at a time; its address if it has none.
  package func label(of queue: UInt64, at time: UInt64, _ index: [UInt64: [Int]]) -> String {
    let known = Self.isUnnamed(queue, unnamed) ? [] : index[queue] ?? []
    // A queue is named at its first event, a moment before or after that event.
    let text =
      known.last { names[$0].time <= time }.map { names[$0].text } ?? known.first.map { names[$0].text } ?? ""
    return text.isEmpty ? "queue 0x" + String(queue, radix: 16) : text
  }

  package static func isUnnamed(_ queue: UInt64, _ unnamed: [UInt8]) -> Bool {
    let bit = Int(queue / 16 % UInt64(RecordingLayout.unnamedSize * 8))
    return bit / 8 < unnamed.count && unnamed[bit / 8] >> UInt8(bit % 8) & 1 == 1
  }

  package var lost: UInt64 { overwritten &+ withoutRing &+ unreadable }

  /// What is missing, for people; empty if nothing is.
  package var losses: String {
    [
      (overwritten, "older events were overwritten"),
      (withoutRing, "events had no room"),
      (unreadable, "events cannot be read: the recording is damaged"),
      (lostNames, "queues have no name: there was no room"),
    ].filter { $0.0 > 0 }.map { "; \($0.0) \($0.1)" }.joined()
      + (pauses.isEmpty ? "" : "; recording was off \(pauses.count == 1 ? "once" : "\(pauses.count) times")")
  }

  /// What a trace says of lost events; nil if it has lost none.
  package var lossNotice: String? {
    guard lost > 0 else { return nil }
    return "\(lost) events are lost, and what they were about is missing here: \(Self.remedy)."
  }

  /// What to do against lost events.
  package static let remedy =
    "events that a thread's ring lost before they were read, in a flood of tiny items or on a busy machine. Larger "
    + "rings keep them: start the program with CONCOURSE_RECORDER=1000000 in its environment"

  /// The places in `names` of each queue.
  package var namesByQueue: [UInt64: [Int]] {
    var index: [UInt64: [Int]] = [:]
    for (place, name) in names.enumerated() { index[name.queue, default: []].append(place) }
    return index
  }
}
