@testable import ConcourseRecording
@testable import ConcourseTool

/// Makes the bytes of a recording.
struct RecordingBuilder {
  var capacity = 64
  var process: UInt32 = 4711
  var rings: [Ring] = []
  var names: [(queue: UInt64, ticks: UInt64, text: String)] = []
  var modules = "1000 /bin/program\n"
  var lost: UInt64 = 0
  var lostNames: UInt64 = 0
  /// Queues whose names had no room.
  var unnamed: [UInt64] = []
  /// Ticks of half a nanosecond.
  var hasTicks = true
  /// The last reading of the clock by each thread.
  var latestUptime = firstUptime + 1_000_000

  struct Ring {
    var thread: UInt32
    var name = "worker"
    var records: [Record] = []
    /// Those that came before `records` and are gone.
    var gone: UInt64 = 0
  }

  struct Record {
    var ticks: UInt64
    var event: RecordedEvent.Kind
    var node: UInt64 = 0
    var object: UInt64 = 0
    var function: UInt64 = 0
  }

  static let firstTicks: UInt64 = 1_000_000
  static let firstUptime: UInt64 = 5_000_000
  private static let ringsAt = 4096
  private static let modulesAt = 8192
  private static let namesAt = 8192 + 4096
  private static let recordsAt = 8192 + 8192

  var bytes: [UInt8] {
    var bytes = [UInt8](repeating: 0, count: Self.recordsAt + rings.count * capacity * 32)
    func put<Number: FixedWidthInteger>(_ number: Number, _ place: Int) {
      withUnsafeBytes(of: number.littleEndian) {
        for (index, byte) in $0.enumerated() { bytes[place + index] = byte }
      }
    }
    func put(_ text: String, _ place: Int) {
      for (index, byte) in text.utf8.enumerated() { bytes[place + index] = byte }
    }
    put("CONCREC", 0)
    put(RecordingLayout.version, 8)
    put(process, 12)
    put(UInt32(capacity), 16)
    put(UInt32(32), 20)
    put(UInt32(32), 24)
    put(UInt32(4096), 28)
    for (index, place) in [Self.ringsAt, Self.recordsAt, Self.namesAt, Self.modulesAt].enumerated() {
      put(UInt64(place), 32 + index * 8)
    }
    put(Self.firstTicks, 64)
    put(Self.firstUptime, 72)
    put(UInt32(hasTicks ? 0 : 1), 88)
    put(UInt32(rings.count), 92)
    put(UInt32(names.count), 96)
    put(UInt32(modules.utf8.count), 100)
    put(lost, 104)
    put(lostNames, 112)
    for queue in unnamed { bytes[2048 + Int(queue / 16 / 8 % 2048)] |= 1 << UInt8(queue / 16 % 8) }
    put(modules, Self.modulesAt)
    for (index, ring) in rings.enumerated() {
      let place = Self.ringsAt + index * 64
      put(ring.gone + UInt64(ring.records.count), place)
      put(ring.thread, place + 8)
      put(ring.thread, place + 12)
      put(Self.firstTicks + 2_000_000, place + 16)
      put(latestUptime, place + 24)
      put(ring.name, place + 40)
      for (number, record) in ring.records.enumerated() {
        let slot = (Int(ring.gone) + number) % capacity
        let place = Self.recordsAt + (index * capacity + slot) * 32
        put(record.ticks, place)
        put(UInt64(record.event.rawValue) << 56 | record.node, place + 8)
        put(record.object, place + 16)
        put(record.function, place + 24)
      }
    }
    for (index, name) in names.enumerated() {
      let place = Self.namesAt + index * 128
      put(name.queue, place)
      put(name.ticks, place + 8)
      put([1, 1] as [UInt8], place + 24)
      put(UInt16(name.text.utf8.count), place + 26)
      put(name.text, place + 32)
    }
    func put(_ raw: [UInt8], _ place: Int) {
      for (index, byte) in raw.enumerated() { bytes[place + index] = byte }
    }
    return bytes
  }

  /// A recording with two threads: one submits three items, the other runs two of them, waits in one, and is in the
  /// second at the end.
  static var sample: RecordingBuilder {
    var builder = RecordingBuilder()
    builder.names = [(0xA0, firstTicks, "queue \"a\"\n"), (0xB0, firstTicks, "")]
    builder.rings = [
      Ring(
        thread: 100, name: "main",
        records: [
          Record(ticks: firstTicks, event: .threadBegan, object: 100),
          Record(ticks: firstTicks + 200, event: .submitted, node: 1, object: 0xA0, function: 0x1010),
          Record(ticks: firstTicks + 400, event: .submitted, node: 2, object: 0xB0, function: 0x1020),
          Record(ticks: firstTicks + 600, event: .submitted, node: 3, object: 0xA0, function: 0x1010),
        ]),
      Ring(
        thread: 101,
        records: [
          Record(ticks: firstTicks + 300, event: .threadBegan, object: 101),
          Record(ticks: firstTicks + 500, event: .started, node: 1, object: 0xA0, function: 0x1010),
          Record(ticks: firstTicks + 700, event: .waitBegan, node: 4, object: 0xC0),
          Record(ticks: firstTicks + 900, event: .waitEnded, node: 4, object: 0xC0),
          Record(ticks: firstTicks + 1000, event: .ended, node: 1, object: 0xA0, function: 0x1010),
          Record(ticks: firstTicks + 1100, event: .started, node: 2, object: 0xB0, function: 0x1020),
        ]),
    ]
    return builder
  }
}

/// Bytes in memory.
final class BytesInMemory: RecordingBytes {
  var bytes: [UInt8]
  /// Called before each read.
  var beforeRead: (BytesInMemory, UInt64) -> Void = { _, _ in }

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  func read(at offset: UInt64, count: Int) -> [UInt8]? {
    beforeRead(self, offset)
    guard count >= 0, offset <= UInt64(bytes.count), count <= bytes.count - Int(offset) else { return nil }
    return Array(bytes[Int(offset)..<Int(offset) + count])
  }
}
