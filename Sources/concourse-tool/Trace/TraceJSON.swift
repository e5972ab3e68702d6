/// Writes a timeline in the Trace Event Format, which chrome://tracing and ui.perfetto.dev load.
///
/// The threads are one process of the trace, the queues another. Times are microseconds since the first event.
struct TraceJSON {
  private let recording: Recording
  private let timeline: Timeline
  private let functions: (UInt64) -> String
  private let labels: [UInt64: [Int]]
  private var output: [UInt8] = []
  private var isFirst = true

  /// The number of the process that stands for the queues.
  private static let queues = 0

  static func write(_ recording: Recording, functions: @escaping (UInt64) -> String) -> [UInt8] {
    var writer = TraceJSON(
      recording: recording, timeline: Timeline(recording), functions: functions,
      labels: recording.namesByQueue)
    writer.output.reserveCapacity(writer.timeline.items.count * 400 + 4096)
    writer.writeAll()
    return writer.output
  }

  private mutating func writeAll() {
    text(
      "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"lost events\":\"\(recording.lost)\"},\"traceEvents\":[\n")
    let process = Int(recording.process)
    let program = recording.program
    metadata("process_name", process, 0, program)
    metadata("process_name", Self.queues, 0, "queues of \(program)")
    for thread in timeline.threads {
      metadata("thread_name", process, Int(thread), recording.threads[thread] ?? "thread")
    }
    let base = timeline.start
    for index in timeline.items.indices {
      let item = timeline.items[index]
      event("X", process, Int(item.thread), item.start - base, functions(item.function), "item")
      number(",\"dur\":", micros: item.end - item.start)
      text(",\"args\":{\"queue\":")
      string(recording.label(of: item.queue, at: item.start, labels))
      if let submission = item.submission {
        let submitted = timeline.submissions[submission]
        number(",\"waited (us)\":", micros: item.start - min(submitted.time, item.start))
        if submitted.call < submitted.time {
          number(",\"delayed (us)\":", micros: submitted.time - submitted.call)
        }
        text(",\"submitted by\":")
        string(submitter(of: submitted))
      }
      if !item.hasEnded { text(",\"ended\":false") }
      text("}}")
    }
    for (number, submission) in timeline.submissions.enumerated() {
      guard let item = submission.item.map({ timeline.items[$0] }) else { continue }
      if submission.submitter == nil {
        // An arrow begins in a slice.
        event("X", process, Int(submission.thread), submission.call - base, "submit", "submission")
        text(",\"dur\":0.001}")
      }
      event("s", process, Int(submission.thread), submission.call - base, "submission", "flow")
      text(",\"id\":\(number)}")
      event("f", process, Int(item.thread), max(item.start, submission.time) - base, "submission", "flow")
      text(",\"bp\":\"e\",\"id\":\(number)}")
    }
    for wait in timeline.waits {
      let name = "wait: " + Recording.wait(wait.kind)
      event("X", process, Int(wait.thread), wait.start - base, name, "wait")
      number(",\"dur\":", micros: wait.end - wait.start)
      text(",\"args\":{\"for\":")
      string(recording.object(of: wait, labels))
      text(wait.hasEnded ? "}}" : ",\"ended\":false}}")
    }
    for mark in timeline.marks {
      event(
        "i", process, Int(mark.thread), mark.time - base, mark.kind == .timer ? "timer" : "source event",
        "event")
      text(",\"s\":\"t\",\"args\":{\"object\":\"0x\(String(mark.object, radix: 16))\"}}")
    }
    writeQueues(base)
    for level in timeline.running {
      event("C", process, 0, level.time - base, "running threads", "counter")
      text(",\"args\":{\"threads\":\(level.value)}}")
    }
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
          event("X", Self.queues, track, item.start - base, functions(item.function), "item")
          number(",\"dur\":", micros: item.end - item.start)
          text(",\"args\":{\"thread\":\(item.thread)}}")
        }
        track += 1
      }
      for level in timeline.depths[queue] ?? [] {
        event("C", Self.queues, 0, level.time - base, "depth of \(label)", "counter")
        text(",\"args\":{\"items\":\(level.value)}}")
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

  /// Begins an event; the caller ends it with a brace.
  private mutating func event(
    _ phase: String, _ process: Int, _ thread: Int, _ time: UInt64, _ name: String, _ category: String
  ) {
    text(isFirst ? "{\"ph\":\"" : ",\n{\"ph\":\"")
    isFirst = false
    text(phase)
    text("\",\"pid\":\(process),\"tid\":\(thread),\"cat\":\"")
    text(category)
    text("\",\"name\":")
    string(name)
    number(",\"ts\":", micros: time)
  }

  private mutating func metadata(_ kind: String, _ process: Int, _ thread: Int, _ name: String) {
    text(isFirst ? "{\"ph\":\"M\",\"pid\":" : ",\n{\"ph\":\"M\",\"pid\":")
    isFirst = false
    text("\(process),\"tid\":\(thread),\"name\":\"\(kind)\",\"args\":{\"name\":")
    string(name)
    text("}}")
  }

  private mutating func text(_ text: String) { output += text.utf8 }

  /// Nanoseconds as microseconds with three decimals.
  private mutating func number(_ before: String, micros nanoseconds: UInt64) {
    text(before)
    text(String(nanoseconds / 1000))
    let rest = Int(nanoseconds % 1000)
    output += [UInt8(ascii: "."), UInt8(48 + rest / 100), UInt8(48 + rest / 10 % 10), UInt8(48 + rest % 10)]
  }

  private mutating func string(_ value: String) {
    output.append(UInt8(ascii: "\""))
    for byte in value.utf8 {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"): output += [UInt8(ascii: "\\"), byte]
      case 0..<32: text("\\u00" + (byte < 16 ? "0" : "1") + String(byte % 16, radix: 16))
      default: output.append(byte)
      }
    }
    output.append(UInt8(ascii: "\""))
  }
}
