/// The bytes of a recording: a file, or the memory of a process.
package protocol RecordingBytes {
  /// Exactly `count` bytes from `offset`, or nil.
  func read(at offset: UInt64, count: Int) -> [UInt8]?
}

/// The layout of a recording, which Sources/CConcourse/include/concourse_recording.h declares. Nothing of it is trusted.
package struct RecordingLayout {
  package static let headerSize = 120
  package static let ringSize = 64
  package static let recordSize = 32
  package static let nameSize = 128
  /// The bits of queues whose names had no room: where they are, and how many bytes.
  package static let unnamedOffset: UInt64 = 2048
  package static let unnamedSize = 2048
  package static let version: UInt32 = 2
  package static let magic = Array("CONCREC".utf8) + [0]

  package let process: UInt32
  package let capacity: Int
  package let ringLimit: Int
  package let nameLimit: Int
  package let moduleLimit: Int
  package let rings: UInt64
  package let records: UInt64
  package let names: UInt64
  package let modules: UInt64
  package let firstTicks: UInt64
  package let firstUptime: UInt64
  /// Nanoseconds since 1970.
  package let firstWall: UInt64
  package let hasTicks: Bool

  package init(_ bytes: any RecordingBytes) throws(RecordingFailure) {
    guard let header = bytes.read(at: 0, count: Self.headerSize), Array(header[..<8]) == Self.magic else {
      throw RecordingFailure("not a recording of Concourse")
    }
    let version: UInt32 = header.number(at: 8)!
    guard version == Self.version else {
      throw RecordingFailure("made by another version of Concourse: layout \(version), not \(Self.version)")
    }
    process = header.number(at: 12)!
    let capacity: UInt32 = header.number(at: 16)!
    let ringLimit: UInt32 = header.number(at: 20)!
    let nameLimit: UInt32 = header.number(at: 24)!
    let moduleLimit: UInt32 = header.number(at: 28)!
    // No more than the library makes.
    guard capacity > 0, capacity & (capacity - 1) == 0, capacity <= 1 << 20, ringLimit <= 256,
      nameLimit <= 1 << 20, moduleLimit <= 1 << 24
    else { throw RecordingFailure("its header is damaged") }
    self.capacity = Int(capacity)
    self.ringLimit = Int(ringLimit)
    self.nameLimit = Int(nameLimit)
    self.moduleLimit = Int(moduleLimit)
    rings = header.number(at: 32)!
    records = header.number(at: 40)!
    names = header.number(at: 48)!
    modules = header.number(at: 56)!
    guard [rings, records, names, modules].allSatisfy({ $0 < 1 << 40 }) else {
      throw RecordingFailure("its header is damaged")
    }
    firstTicks = header.number(at: 64)!
    firstUptime = header.number(at: 72)!
    firstWall = header.number(at: 80)!
    hasTicks = header.number(at: 88, as: UInt32.self)! == 0
    guard firstUptime < 1 << 60 else { throw RecordingFailure("its header is damaged") }
  }

  /// The numbers in the header that change.
  package struct Counts {
    package var rings = 0
    package var names = 0
    package var moduleBytes = 0
    package var lostEvents: UInt64 = 0
    package var lostNames: UInt64 = 0
  }

  package func counts(_ bytes: any RecordingBytes) -> Counts? {
    guard let header = bytes.read(at: 0, count: Self.headerSize) else { return nil }
    return Counts(
      rings: min(Int(header.number(at: 92, as: UInt32.self)!), ringLimit),
      names: min(Int(header.number(at: 96, as: UInt32.self)!), nameLimit),
      moduleBytes: min(Int(header.number(at: 100, as: UInt32.self)!), moduleLimit),
      lostEvents: header.number(at: 104)!, lostNames: header.number(at: 112)!)
  }
}

/// Why a recording cannot be read.
package struct RecordingFailure: Error, Equatable {
  package let reason: String

  package init(_ reason: String) { self.reason = reason }
}

extension [UInt8] {
  /// The little-endian number at `offset`; nil if it is truncated.
  @inlinable
  package func number<Value: FixedWidthInteger>(at offset: Int, as type: Value.Type = Value.self) -> Value? {
    let width = Value.bitWidth / 8
    guard offset >= 0, offset <= count - width else { return nil }
    var value: Value = 0
    for place in 0..<width { value |= Value(truncatingIfNeeded: self[offset + place]) << (8 * place) }
    return value
  }
}
