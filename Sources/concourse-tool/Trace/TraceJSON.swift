import ConcourseRecording

/// Writes a timeline in the Trace Event Format, which chrome://tracing and ui.perfetto.dev load.
///
/// The threads are one process of the trace, the queues another. Times are microseconds since the first event.
struct TraceJSON {
  private let recording: RecordedRun
  private let timeline: Timeline
  private let functions: (UInt64) -> String
  private let labels: [UInt64: [Int]]
  private let tasks: TasksAtEnd?
  private var output: [UInt8] = []
  private var isFirst = true

  /// The number of the process that stands for the queues.
  private static let queues = 0

  static func write(
    _ recording: RecordedRun, _ tasks: TasksAtEnd? = nil, functions: @escaping (UInt64) -> String
  ) -> [UInt8] {
    var writer = TraceJSON(
      recording: recording, timeline: Timeline(recording), functions: functions,
      labels: recording.namesByQueue, tasks: tasks)
    writer.output.reserveCapacity(writer.timeline.items.count * 400 + 4096)
    writer.writeAll()
    return writer.output
  }

  private mutating func writeAll() {
    var about = [("lost events", JSONValue.string("\(recording.lost)"))]
    if let tasks { about.append((TasksAtEnd.title, .string(tasks.lines.joined(separator: "; ")))) }
    text("{\"displayTimeUnit\":\"ns\",\"otherData\":")
    JSONValue.object(about).write(to: &output)
    text(",\"traceEvents\":[\n")
    let process = Int(recording.process)
    let program = recording.program
    metadata("process_name", process, 0, program)
    metadata("process_name", Self.queues, 0, "queues of \(program)")
    for thread in timeline.threads {
      metadata("thread_name", process, Int(thread), recording.threads[thread] ?? "thread")
    }
    let base = timeline.start
    for item in timeline.items {
      var details = [("queue", JSONValue.string(recording.label(of: item.queue, at: item.start, labels)))]
      if let submission = item.submission {
        let submitted = timeline.submissions[submission]
        details.append(("waited (us)", .micros(item.start - min(submitted.time, item.start))))
        if submitted.call < submitted.time {
          details.append(("delayed (us)", .micros(submitted.time - submitted.call)))
        }
        details.append(("submitted by", .string(submitter(of: submitted))))
      }
      if !item.hasEnded { details.append(("ended", .bool(false))) }
      event(
        "X", process, Int(item.thread), item.start - base, functions(item.function), "item",
        ("dur", .micros(item.end - item.start)), ("args", .object(details)))
    }
    for (number, submission) in timeline.submissions.enumerated() {
      guard let item = submission.item.map({ timeline.items[$0] }) else { continue }
      let (from, call) = (Int(submission.thread), submission.call - base)
      if submission.submitter == nil {
        // An arrow begins in a slice.
        event("X", process, from, call, "submit", "submission", ("dur", .micros(1)))
      }
      event("s", process, from, call, "submission", "flow", ("id", .int(number)))
      event(
        "f", process, Int(item.thread), max(item.start, submission.time) - base, "submission", "flow",
        ("bp", .string("e")), ("id", .int(number)))
    }
    for wait in timeline.waits {
      var details = [("for", JSONValue.string(recording.object(of: wait, labels)))]
      if !wait.hasEnded { details.append(("ended", .bool(false))) }
      event(
        "X", process, Int(wait.thread), wait.start - base, "wait: " + RecordedRun.wait(wait.kind), "wait",
        ("dur", .micros(wait.end - wait.start)), ("args", .object(details)))
    }
    for mark in timeline.marks {
      event(
        "i", process, Int(mark.thread), mark.time - base, mark.kind == .timer ? "timer" : "source event",
        "event", ("s", .string("t")), ("args", .object([("object", .address(mark.object))])))
    }
    writeQueues(base)
    for level in timeline.running { counter(process, level, base, "running threads", of: "threads") }
    text("\n]}\n")
  }

  private mutating func writeQueues(_ base: UInt64) {
    let itemsByQueue = timeline.itemsByQueue
    var track = 1
    for queue in timeline.queues {
      let label = recording.label(of: queue, at: timeline.start, labels)
      for (place, lane) in timeline.lanes(of: queue, itemsByQueue).enumerated() {
        metadata("thread_name", Self.queues, track, place == 0 ? label : "\(label) (\(place + 1))")
        for index in lane {
          let item = timeline.items[index]
          event(
            "X", Self.queues, track, item.start - base, functions(item.function), "item",
            ("dur", .micros(item.end - item.start)), ("args", .object([("thread", .int(item.thread))])))
        }
        track += 1
      }
      for level in timeline.depths[queue] ?? [] {
        counter(Self.queues, level, base, "depth of \(label)", of: "items")
      }
    }
  }

  private func submitter(of submission: Timeline.Submission) -> String {
    if let item = submission.submitter.map({ timeline.items[$0] }) {
      return functions(item.function) + " on " + recording.label(of: item.queue, at: item.start, labels)
    }
    return "thread \(submission.thread)" + (recording.threads[submission.thread].map { " (\($0))" } ?? "")
  }

  // MARK: Pieces

  private mutating func event(
    _ phase: String, _ process: Int, _ thread: Int, _ time: UInt64, _ name: String, _ category: String,
    _ more: (String, JSONValue)...
  ) {
    object(
      [
        ("ph", .string(phase)), ("pid", .int(process)), ("tid", .int(thread)), ("cat", .string(category)),
        ("name", .string(name)), ("ts", .micros(time)),
      ] + more)
  }

  private mutating func counter(
    _ process: Int, _ level: Timeline.Level, _ base: UInt64, _ name: String, of what: String
  ) {
    event("C", process, 0, level.time - base, name, "counter", ("args", .object([(what, .int(level.value))])))
  }

  private mutating func metadata(_ kind: String, _ process: Int, _ thread: Int, _ name: String) {
    object([
      ("ph", .string("M")), ("pid", .int(process)), ("tid", .int(thread)), ("name", .string(kind)),
      ("args", .object([("name", .string(name))])),
    ])
  }

  /// Each event has a line.
  private mutating func object(_ members: [(String, JSONValue)]) {
    if !isFirst { text(",\n") }
    isFirst = false
    JSONValue.object(members).write(to: &output)
  }

  private mutating func text(_ text: String) { output += text.utf8 }
}
