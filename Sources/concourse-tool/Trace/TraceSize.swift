import ConcourseRecording

/// How large a trace gets, and how much of a recording fits into a file.
enum TraceSize {
  typealias Encoding = (RecordedRun) throws(RecordingFailure) -> [UInt8]

  /// A trace above this size is announced before it is made.
  static let large = 64_000_000
  /// The events whose trace tells how long that of all would be.
  private static let sampled = 20_000

  /// The bytes of the trace of a recording, judged by that of its last events.
  static func expected(_ recording: RecordedRun, _ encode: Encoding) throws(RecordingFailure) -> Int {
    let count = recording.events.count
    guard count > sampled else { return try encode(recording).count }
    return Int(Double(try encode(recording.last(events: sampled)).count) / Double(sampled) * Double(count))
  }

  /// The trace of the last part of a recording whose trace has at most `limit` bytes.
  static func write(_ recording: inout RecordedRun, limit: Int, _ encode: Encoding) throws(RecordingFailure)
    -> [UInt8]
  {
    var size = try expected(recording, encode)
    var kept = recording
    var count = recording.events.count
    while true {
      if size <= limit {
        let trace = try encode(kept)
        if trace.count <= limit {
          recording = kept
          return trace
        }
        size = trace.count
      }
      // A little less than in proportion: the names and the page itself do not shrink.
      count = Int(Double(count) * Double(limit) / Double(size) * 0.95)
      guard count > 0 else {
        throw RecordingFailure("no event fits into \(bytes(limit)): raise --limit")
      }
      kept = recording.last(events: count)
      size = 0
    }
  }

  /// Three digits or so, and a unit.
  static func bytes(_ count: Int) -> String {
    switch count {
    case ..<10_000: "\(count) bytes"
    case ..<10_000_000: "\(count / 1000) kB"
    case ..<10_000_000_000: "\(count / 1_000_000) MB"
    default: "\(count / 1_000_000_000) GB"
    }
  }
}

extension RecordedRun {
  /// The last nanoseconds of what was recorded.
  func last(nanoseconds: UInt64) -> RecordedRun {
    guard let latest = events.last?.time else { return self }
    let end = max(latest, end ?? 0)
    return since(end > nanoseconds ? end - nanoseconds : 0)
  }

  /// At most so many of the last events, and the beginnings of what was going on then.
  func last(events count: Int) -> RecordedRun {
    guard count < events.count else { return self }
    return since(place: events.count - count, at: events[events.count - count].time)
  }

  private func since(_ time: UInt64) -> RecordedRun {
    since(place: events.firstIndex { $0.time >= time } ?? events.count, at: time)
  }

  /// The events from a place on. Items and waits that had begun begin at `time`; a submission before it is not shown.
  private func since(place: Int, at time: UInt64) -> RecordedRun {
    guard place > 0 else { return self }
    var open: [UInt32: [RecordedEvent]] = [:]
    var missing = gaps[...]
    for event in events[..<place] {
      while let gap = missing.first, gap.time <= event.time {
        open[gap.thread] = nil
        missing.removeFirst()
      }
      switch event.kind {
      case .started, .waitBegan: open[event.thread, default: []].append(event)
      case .ended:
        if let begun = open[event.thread]?.lastIndex(where: {
          $0.kind == .started && $0.object == event.object && $0.function == event.function
        }) {
          open[event.thread]!.removeSubrange(begun...)
        }
      case .waitEnded:
        if open[event.thread]?.last?.kind == .waitBegan { open[event.thread]!.removeLast() }
      case .parked, .threadEnded: open[event.thread] = nil
      default: break
      }
    }
    var result = self
    result.gaps = Array(missing)
    result.events =
      open.sorted { $0.key < $1.key }.flatMap { $0.value }.map {
        var event = $0
        event.time = time
        return event
      } + events[place...]
    return result
  }
}
