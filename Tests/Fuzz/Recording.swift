// Reads a recording that its owner changes meanwhile, and does with it what `report`, `trace` and `top` do.
@testable import ConcourseRecording
@testable import ConcourseTool

/// The recording, which has other bytes from some read on: the first byte says from which one, the second how many
/// changes follow at the end of the input, two bytes for the place and one for the value.
private final class ChangingBytes: RecordingBytes {
  private let before: [UInt8]
  private let after: [UInt8]
  private var readsLeft: UInt8

  init(_ input: FuzzInput) {
    var input = input
    readsLeft = input.next()
    let changes = min(Int(input.next(UInt8.self)), input.rest.count / 3)
    before = Array(input.rest.dropLast(3 * changes))
    var after = before
    var rest = input.rest.suffix(3 * changes)
    while let low = rest.popFirst(), let high = rest.popFirst(), let value = rest.popFirst() {
      let place = Int(high) << 8 | Int(low)
      if place < after.count { after[place] = value }
    }
    self.after = after
  }

  func read(at offset: UInt64, count: Int) -> [UInt8]? {
    let bytes = readsLeft > 0 ? before : after
    if readsLeft > 0 { readsLeft -= 1 }
    guard count >= 0, offset <= UInt64(bytes.count), count <= bytes.count - Int(offset) else { return nil }
    return Array(bytes[Int(offset)..<Int(offset) + count])
  }
}

var seeds: [[UInt8]] {
  var small = RecordingBuilder.sample
  small.capacity = 8
  var uptime = small
  uptime.hasTicks = false
  return [[0, 0] + small.bytes, [9, 2] + uptime.bytes + [0, 16, 3, 16, 16, 9]]
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let input = FuzzInput(start, count)
  guard let live = try? RecordingReader(ChangingBytes(input)) else { return 0 }
  var statistics = EventStatistics(start: live.layout.firstUptime)
  for interval in 1...3 as ClosedRange<UInt64> {
    live.poll()
    statistics.add(live.take(), before: interval << 59)
    let counted = statistics.finish(at: interval << 59)
    for queue in counted.queues.values { _ = (queue.run.percentile(0.99), queue.wait.mean) }
  }
  guard let reader = try? RecordingReader(ChangingBytes(input)) else { return 0 }
  reader.poll()
  reader.poll()
  var recording = reader.recording()
  // The paths are the input's: none is opened.
  recording.modules = []
  let names = FunctionNames(recording)
  names.nameQueues(&recording)
  names.nameThunks(&recording)
  _ = RecordingText.text(recording, showsAll: true) { names.name(of: $0) }
  for format in [TraceFormat.json, .pftrace, .html] {
    _ = try? format.write(recording) { names.name(of: $0) }
  }
  _ = SlowReason(recording, Timeline(recording)) { names.name(of: $0) }.sentence
  _ = recording.last(nanoseconds: 1 << 40).last(events: 3).losses
  return 0
}
