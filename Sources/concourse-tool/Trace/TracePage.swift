import ConcourseRecording

/// Writes a timeline as one page, which needs no network: the same tracks as the other formats, a search, who submitted
/// an item, histograms of the queues, and a verdict. The page is `trace.html` with `panel.js`
/// (the column beside the tracks) and `trace.js`, which the package embeds.
enum TracePage {
  /// What a page says of a recording that is not the engine's, in place of what is found in it.
  struct Telling {
    var reason: String
    /// Titles and texts.
    var verdict: [(String, String)]
    var waitName: (Timeline.Wait) -> String
  }

  static func write(
    _ recording: RecordedRun, _ telling: Telling? = nil, tasks: TasksAtEnd? = nil,
    functions: @escaping (UInt64) -> String
  ) -> [UInt8] {
    let timeline = Timeline(recording)
    var columns = Columns(recording, timeline, telling, tasks)
    columns.fill(functions)
    // `trace.html` has `^` only around the marks.
    var output: [UInt8] = []
    let page = PackageResources.trace_html
    for part in page.split(separator: UInt8(ascii: "^"), omittingEmptySubsequences: false) {
      if part.elementsEqual("META".utf8) {
        output += columns.meta
      } else if part.elementsEqual("COLUMNS".utf8) {
        output += Base64.encode(columns.bytes)
      } else if part.elementsEqual("SCRIPT".utf8) {
        output += PackageResources.panel_js + PackageResources.trace_js
      } else {
        output += part
      }
    }
    return output
  }

  /// The data of the page: texts as JSON, and numbers as arrays.
  private struct Columns {
    let recording: RecordedRun
    let timeline: Timeline
    let telling: Telling?
    let tasks: TasksAtEnd?
    let labels: [UInt64: [Int]]
    private(set) var bytes: [UInt8] = []
    private(set) var meta: [UInt8] = []
    /// Of the columns.
    private var types: [String] = []

    init(_ recording: RecordedRun, _ timeline: Timeline, _ telling: Telling?, _ tasks: TasksAtEnd?) {
      self.recording = recording
      self.timeline = timeline
      self.telling = telling
      self.tasks = tasks
      labels = recording.namesByQueue
    }

    mutating func fill(_ functions: @escaping (UInt64) -> String) {
      let items = timeline.items
      var names = Numbering()
      var threadPlaces: [UInt32: UInt32] = [:]
      for (place, thread) in timeline.threads.enumerated() { threadPlaces[thread] = UInt32(place) }
      var queuePlaces: [UInt64: UInt32] = [:]
      for (place, queue) in timeline.queues.enumerated() { queuePlaces[queue] = UInt32(place) }
      var lanes = [UInt32](repeating: 0, count: items.count)
      let itemsByQueue = timeline.itemsByQueue
      for queue in timeline.queues {
        for (lane, members) in timeline.lanes(of: queue, itemsByQueue).enumerated() {
          for item in members { lanes[item] = UInt32(lane) }
        }
      }
      let base = timeline.start
      let submissions = items.map { $0.submission.map { timeline.submissions[$0] } }
      append(items.map { $0.start - base })
      append(items.map { $0.end - base })
      // One more than the time, or the place of the submitter; 0 for none.
      append(submissions.map { $0.map { $0.time - base + 1 } ?? 0 })
      append(submissions.map { $0.map { $0.time - $0.call } ?? 0 })
      append(submissions.map { UInt64(($0?.submitter ?? -1) + 1) })
      append(items.map { names.number(of: functions($0.function)) })
      append(items.map { threadPlaces[$0.thread] ?? 0 })
      append(submissions.map { $0.flatMap { threadPlaces[$0.thread] } ?? 0 })
      append(items.map { queuePlaces[$0.queue] ?? 0 })
      append(lanes)
      append(items.map { UInt32($0.depth) })
      var waitNames = Numbering()
      append(timeline.waits.map { $0.start - base })
      append(timeline.waits.map { $0.end - base })
      append(timeline.waits.map { threadPlaces[$0.thread] ?? 0 })
      append(timeline.waits.map { waitNames.number(of: name($0)) })
      append(timeline.waits.map { UInt32($0.item.map { items[$0].depth + 1 } ?? 0) })

      let (reason, verdict) = telling.map { ($0.reason, $0.verdict) } ?? found(functions)
      JSONValue.object([
        ("process", .int(recording.process)), ("items", .int(items.count)),
        ("waits", .int(timeline.waits.count)), ("duration", .int(timeline.end - base)),
        ("lost", .int(recording.lost)), ("program", .string(recording.program)),
        ("notice", .string(recording.lossNotice ?? "")),
        ("threads", .strings(timeline.threads.map { "\(recording.threads[$0] ?? "thread") \($0)" })),
        ("queues", .strings(timeline.queues.map { recording.label(of: $0, at: base, labels) })),
        ("functions", .strings(names.texts)), ("waitNames", .strings(waitNames.texts)),
        ("types", .strings(types)), ("reason", .string(reason)),
        ("verdict", .array(verdict.map { .strings([$0.0, $0.1]) })),
      ]).write(to: &meta)
    }

    /// What the recording says of the program.
    private func found(_ functions: @escaping (UInt64) -> String) -> (String, [(String, String)]) {
      let reason = SlowReason(recording, timeline, functions: functions)
      var verdict = TraceVerdict(recording, timeline).lines
      if let contention = reason.contention { verdict.append(("Most contended queue", contention)) }
      if let blocked = reason.blocked { verdict.append(("Blocked threads", blocked)) }
      if let tasks { verdict.append((TasksAtEnd.title, tasks.lines.joined(separator: "\n"))) }
      return (reason.sentence, verdict)
    }

    private func name(_ wait: Timeline.Wait) -> String {
      if let telling { return telling.waitName(wait) }
      let kind = RecordedRun.wait(wait.kind)
      return wait.kind <= 2 ? "\(kind): \(recording.label(of: wait.object, at: wait.start, labels))" : kind
    }

    /// Appends a column in the narrowest type that has room for its largest number, and fills up to a multiple of 8
    /// bytes.
    private mutating func append<Number: UnsignedInteger>(_ numbers: [Number]) {
      switch numbers.max() ?? 0 {
      case ...0xFF: put(numbers.map { UInt8($0) })
      case ...0xFFFF: put(numbers.map { UInt16($0) })
      case ...0xFFFF_FFFF: put(numbers.map { UInt32($0) })
      default: put(numbers.map { Double($0) })
      }
    }

    private mutating func put<Number>(_ numbers: [Number]) {
      numbers.withUnsafeBytes { bytes += $0 }
      while bytes.count % 8 != 0 { bytes.append(0) }
      types.append("\(Number.self)")
    }
  }

  /// Texts by number, each once.
  private struct Numbering {
    private(set) var texts: [String] = []
    private var numbers: [String: UInt32] = [:]

    mutating func number(of text: String) -> UInt32 {
      if let known = numbers[text] { return known }
      texts.append(text)
      numbers[text] = UInt32(texts.count - 1)
      return UInt32(texts.count - 1)
    }
  }
}

enum Base64 {
  static func encode(_ bytes: [UInt8]) -> [UInt8] {
    let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    var output: [UInt8] = []
    output.reserveCapacity(bytes.count / 3 * 4 + 4)
    for place in stride(from: 0, to: bytes.count, by: 3) {
      let count = min(3, bytes.count - place)
      var group = UInt32(bytes[place]) << 16
      if count > 1 { group |= UInt32(bytes[place + 1]) << 8 }
      if count > 2 { group |= UInt32(bytes[place + 2]) }
      for digit in 0..<4 {
        output.append(digit <= count ? digits[Int(group >> UInt32(18 - 6 * digit) & 63)] : UInt8(ascii: "="))
      }
    }
    return output
  }
}
