import ConcourseRecording

/// Writes a timeline in Perfetto's protobuf format: a sequence of packets, of which each describes a track or an event.
///
/// The numbers of the fields are those of Perfetto's `TracePacket`, `TrackDescriptor` and `TrackEvent`.
struct TracePerfetto {
  private let recording: RecordedRun
  private let timeline: Timeline
  private let functions: (UInt64) -> String
  private let labels: [UInt64: [Int]]
  private var output: [UInt8] = []
  /// The names of events that packets refer to by number.
  private var names: [String: UInt64] = [:]
  private var isFirst = true

  /// A packet to write at a time.
  private struct Entry {
    var time: UInt64
    /// At the same time: ends before beginnings, inner ends and outer beginnings first.
    var order: Int
    var write: (inout TracePerfetto) -> Void
  }

  static func write(_ recording: RecordedRun, functions: @escaping (UInt64) -> String) -> [UInt8] {
    var writer = TracePerfetto(
      recording: recording, timeline: Timeline(recording), functions: functions,
      labels: recording.namesByQueue)
    writer.output.reserveCapacity(writer.timeline.items.count * 120 + 4096)
    writer.writeAll()
    return writer.output
  }

  private enum Kind: UInt64 {
    case begin = 1
    case end, instant, counter
  }

  // MARK: Tracks

  private static let process: UInt64 = 1
  private static let queues: UInt64 = 2
  private static let runningThreads: UInt64 = 3

  private func track(ofThread thread: UInt32) -> UInt64 { 1 << 32 | UInt64(thread) }

  private mutating func writeTracks() -> [(queue: UInt64, tracks: [UInt64], lanes: [[Int]], depth: UInt64)] {
    let (program, process) = (recording.program, UInt64(recording.process))
    descriptor(ProtobufFields().varint(1, Self.process).message(3) { $0.varint(1, process).text(6, program) })
    descriptor(ProtobufFields().varint(1, Self.queues).text(2, "queues"))
    counter(Self.runningThreads, "running threads", Self.process)
    for thread in timeline.threads {
      let name = recording.threads[thread] ?? "thread"
      descriptor(
        ProtobufFields().varint(1, track(ofThread: thread)).varint(5, Self.process).message(4) {
          $0.varint(1, process).varint(2, UInt64(thread)).text(5, name)
        })
    }
    let itemsByQueue = timeline.itemsByQueue
    var next: UInt64 = 2 << 32
    var result: [(queue: UInt64, tracks: [UInt64], lanes: [[Int]], depth: UInt64)] = []
    for queue in timeline.queues {
      let label = recording.label(of: queue, at: timeline.start, labels)
      let lanes = timeline.lanes(of: queue, itemsByQueue)
      var tracks: [UInt64] = []
      for lane in lanes.indices {
        next += 1
        tracks.append(next)
        let name = lane == 0 ? label : "\(label) (\(lane + 1))"
        descriptor(ProtobufFields().varint(1, next).text(2, name).varint(5, Self.queues))
      }
      next += 1
      counter(next, "depth of \(label)", Self.queues)
      result.append((queue, tracks, lanes, next))
    }
    return result
  }

  private mutating func descriptor(_ fields: ProtobufFields) {
    packet(ProtobufFields().bytes(60, fields.bytes))
  }

  private mutating func counter(_ track: UInt64, _ name: String, _ parent: UInt64) {
    descriptor(ProtobufFields().varint(1, track).text(2, name).varint(5, parent).message(8) { $0 })
  }

  // MARK: Events

  private mutating func writeAll() {
    let queues = writeTracks()
    var entries: [Entry] = []
    entries.reserveCapacity(timeline.items.count * 4 + timeline.waits.count * 2)
    for index in timeline.items.indices { add(item: index, to: &entries) }
    for wait in timeline.waits { add(wait, to: &entries) }
    for (queue, tracks, lanes, depth) in queues {
      for (track, lane) in zip(tracks, lanes) {
        for index in lane {
          let item = timeline.items[index]
          addSlice(track, item.start, item.end, 0, functions(item.function), "item", to: &entries) {
            $0.annotation("thread", UInt64(item.thread))
          }
        }
      }
      for level in timeline.depths[queue] ?? [] { add(level, depth, to: &entries) }
    }
    for level in timeline.running { add(level, Self.runningThreads, to: &entries) }
    for (number, submission) in timeline.submissions.enumerated() where submission.item != nil {
      // An arrow begins in a slice or an instant.
      entries.append(
        Entry(time: submission.call, order: 1 << 20) {
          $0.event(.instant, $0.track(ofThread: submission.thread), submission.call, "submit", "submission") {
            $0.fixed(47, UInt64(number) + 1)
          }
        })
    }
    for mark in timeline.marks {
      entries.append(
        Entry(time: mark.time, order: 1 << 20) {
          let name = mark.kind == .timer ? "timer" : "source event"
          $0.event(.instant, $0.track(ofThread: mark.thread), mark.time, name, "event") {
            $0.annotation("object", mark.object)
          }
        })
    }
    let order = entries.indices.sorted {
      (entries[$0].time, entries[$0].order, $0) < (entries[$1].time, entries[$1].order, $1)
    }
    for index in order { entries[index].write(&self) }
  }

  private func add(item index: Int, to entries: inout [Entry]) {
    let item = timeline.items[index]
    let queue = recording.label(of: item.queue, at: item.start, labels)
    addSlice(
      track(ofThread: item.thread), item.start, item.end, item.depth, functions(item.function), "item",
      to: &entries
    ) { fields in
      guard let number = item.submission else { return fields.annotation("queue", queue) }
      let waited = item.start - min(self.timeline.submissions[number].time, item.start)
      return fields.annotation("queue", queue).annotation("waited (ns)", waited).fixed(48, UInt64(number) + 1)
    }
  }

  private func add(_ wait: Timeline.Wait, to entries: inout [Entry]) {
    let depth = wait.item.map { timeline.items[$0].depth + 1 } ?? 0
    let object = recording.object(of: wait, labels)
    addSlice(
      track(ofThread: wait.thread), wait.start, wait.end, depth, "wait: " + RecordedRun.wait(wait.kind),
      "wait",
      to: &entries
    ) { $0.annotation("for", object) }
  }

  private func add(_ level: Timeline.Level, _ track: UInt64, to entries: inout [Entry]) {
    entries.append(
      Entry(time: level.time, order: 1 << 20) {
        $0.event(.counter, track, level.time, nil, "counter") { $0.varint(30, UInt64(level.value)) }
      })
  }

  private func addSlice(
    _ track: UInt64, _ start: UInt64, _ end: UInt64, _ depth: Int, _ name: String, _ category: String,
    to entries: inout [Entry], _ details: @escaping (consuming ProtobufFields) -> ProtobufFields
  ) {
    // A slice without a length would end before it begins.
    let end = max(end, start + 1)
    entries.append(
      Entry(time: start, order: depth + 1) { $0.event(.begin, track, start, name, category, details) })
    entries.append(Entry(time: end, order: -depth) { $0.event(.end, track, end, nil, nil) { $0 } })
  }

  // MARK: Packets

  private mutating func event(
    _ kind: Kind, _ track: UInt64, _ time: UInt64, _ name: String?, _ category: String?,
    _ details: (consuming ProtobufFields) -> ProtobufFields
  ) {
    var fields = ProtobufFields().varint(8, time)
    var number: UInt64 = 0
    if let name {
      if let known = names[name] {
        number = known
      } else {
        number = UInt64(names.count) + 1
        names[name] = number
        fields = fields.message(12) { $0.message(2) { $0.varint(1, number).text(2, name) } }
      }
    }
    packet(
      fields.message(11) {
        var event = $0.varint(9, kind.rawValue).varint(11, track)
        if name != nil { event = event.varint(10, number) }
        if let category { event = event.text(22, category) }
        return details(event)
      })
  }

  private mutating func packet(_ fields: ProtobufFields) {
    // The first packet clears what a reader knows of the sequence; all others build on what came before.
    let whole = fields.varint(10, 1).varint(13, isFirst ? 1 : 2)
    isFirst = false
    output += ProtobufFields().bytes(1, whole.bytes).bytes
  }
}

/// The fields of a protobuf message, encoded.
struct ProtobufFields {
  private(set) var bytes: [UInt8] = []

  private mutating func append(_ number: UInt64) {
    var rest = number
    while rest >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(rest))
  }

  consuming func varint(_ field: UInt64, _ value: UInt64) -> ProtobufFields {
    var result = self
    result.append(field << 3)
    result.append(value)
    return result
  }

  consuming func fixed(_ field: UInt64, _ value: UInt64) -> ProtobufFields {
    var result = self
    result.append(field << 3 | 1)
    withUnsafeBytes(of: value.littleEndian) { result.bytes += $0 }
    return result
  }

  consuming func bytes(_ field: UInt64, _ content: [UInt8]) -> ProtobufFields {
    var result = self
    result.append(field << 3 | 2)
    result.append(UInt64(content.count))
    result.bytes += content
    return result
  }

  consuming func text(_ field: UInt64, _ text: String) -> ProtobufFields { bytes(field, Array(text.utf8)) }

  consuming func message(_ field: UInt64, _ fields: (consuming ProtobufFields) -> ProtobufFields)
    -> ProtobufFields
  {
    bytes(field, fields(ProtobufFields()).bytes)
  }

  /// A detail of an event, shown beside it.
  consuming func annotation(_ name: String, _ value: String) -> ProtobufFields {
    message(4) { $0.text(10, name).text(6, value) }
  }

  consuming func annotation(_ name: String, _ value: UInt64) -> ProtobufFields {
    message(4) { $0.text(10, name).varint(3, value) }
  }
}
