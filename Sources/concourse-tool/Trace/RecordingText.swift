import ConcourseRecording

/// What a flight recorder has left, for people: what each thread was in at the end, and the last events.
enum RecordingText {
  /// - Parameter showsAll: Whether all events are shown, or the last 40.
  static func text(_ recording: RecordedRun, showsAll: Bool = false, name: (UInt64) -> String) -> String {
    let timeline = Timeline(recording)
    let labels = recording.namesByQueue
    let program = recording.program
    var lines = [
      "Recording of process \(recording.process) (\(program)): \(recording.events.count) events of "
        + "\(timeline.threads.count) threads in \(duration(timeline.end - timeline.start))"
        + recording.losses
    ]
    if let notice = recording.lossNotice { lines.append(notice) }
    lines.append("")
    lines.append("At the end")
    // When the process ended is not known.
    let beforeLast = " before the last event"
    let items = timeline.items.filter { !$0.hasEnded }
    let waits = timeline.waits.filter { !$0.hasEnded }
    for thread in timeline.threads.sorted() {
      var state: [String] = []
      for item in items where item.thread == thread {
        state.append(
          "in \(name(item.function)) on \(recording.label(of: item.queue, at: item.start, labels)), since "
            + duration(timeline.end - item.start) + beforeLast)
      }
      for wait in waits where wait.thread == thread {
        state.append(
          "waits: \(RecordedRun.wait(wait.kind)) \(recording.object(of: wait, labels)), since "
            + duration(timeline.end - wait.start) + beforeLast)
      }
      if state.isEmpty { state = ["in no item"] }
      let title = "  \(thread) " + pad(recording.threads[thread] ?? "", 16)
      lines.append(title + state[0])
      lines += state.dropFirst().map { String(repeating: " ", count: title.utf8.count) + $0 }
    }
    let waiting = timeline.queues.compactMap { queue in
      timeline.depths[queue]?.last.flatMap { $0.value > 0 ? (queue, $0.value) : nil }
    }
    if !waiting.isEmpty {
      lines += ["", "Items that had not started"]
      for (queue, count) in waiting.sorted(by: { $0.1 > $1.1 }).prefix(10) {
        lines.append("  " + pad("\(count)", 8) + recording.label(of: queue, at: timeline.end, labels))
      }
    }
    lines += ["", "Last events (before the last one, thread)"]
    for event in recording.events.suffix(showsAll ? .max : 40) {
      lines.append(
        "  " + pad(duration(timeline.end - event.time), 10) + pad("\(event.thread)", 8)
          + describe(event, recording, labels, name))
    }
    return lines.map(ForeignText.line).joined(separator: "\n")
  }

  private static func describe(
    _ event: RecordedEvent, _ recording: RecordedRun, _ labels: [UInt64: [Int]], _ name: (UInt64) -> String
  ) -> String {
    let queue = { recording.label(of: event.object, at: event.time, labels) }
    let hex = "0x" + String(event.object, radix: 16)
    switch event.kind {
    case .submitted: return "submitted  \(name(event.function)) to \(queue())"
    case .scheduled: return "scheduled  \(name(event.function)) for \(queue())"
    case .started: return "started    \(name(event.function)) on \(queue())"
    case .ended: return "ended      \(name(event.function)) on \(queue())"
    case .waitBegan, .waitEnded:
      let what = RecordedRun.wait(event.node) + " " + (event.node <= 2 ? queue() : hex)
      return (event.kind == .waitBegan ? "waits      " : "waited     ") + what
    case .threadBegan: return "first event of the thread"
    case .threadEnded: return "the thread ends"
    case .made: return "a new worker"
    case .parked: return "parks"
    case .woken: return "wakes"
    case .timer: return "timer      \(hex)"
    case .taskName: return "a task's name"
    case .source: return "source     \(hex), value \(event.function)"
    }
  }

  private static func pad(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: max(1, width - text.count))
  }

  /// Three digits and a unit.
  static func duration(_ nanoseconds: UInt64) -> String {
    func number(_ unit: UInt64, _ name: String) -> String {
      let tenths = nanoseconds / (unit / 10)
      return tenths < 1000 ? "\(tenths / 10).\(tenths % 10) \(name)" : "\(tenths / 10) \(name)"
    }
    switch nanoseconds {
    case ..<1000: return "\(nanoseconds) ns"
    case ..<1_000_000: return number(1000, "us")
    case ..<1_000_000_000: return number(1_000_000, "ms")
    default: return number(1_000_000_000, "s")
    }
  }
}

extension RecordedRun {
  /// The name of the recorded program.
  var program: String { modules.first.map { FilePath.lastPart(of: $0.path) } ?? "process" }
}
