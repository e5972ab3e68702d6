/// What takes the scalars of a text.
protocol TextWriter: ~Copyable {
  mutating func write(_ scalar: UInt32)
  /// Whether the system had no memory: whatever else is written is for nothing.
  var hasFailed: Bool { get }
  /// The text. Nil when the system had no memory for it.
  consuming func finish() -> DataObject?
}

/// Writes UTF-8, without a byte order mark.
struct UTF8Writer: TextWriter, ~Copyable {
  private var data: DataWriter

  /// - Parameter estimate: about how many bytes are going to be written.
  init(estimate: Int) { data = DataWriter(estimate: estimate) }

  @inline(__always)
  mutating func write(_ scalar: UInt32) {
    data.makeRoom()
    func put(_ lead: UInt32, _ shift: UInt32) {
      data.put(UInt8(truncatingIfNeeded: lead | scalar >> shift))
    }
    func putNext(_ shift: UInt32) {
      data.put(UInt8(truncatingIfNeeded: 0x80 | scalar >> shift & 0x3F))
    }
    switch scalar {
    case ..<0x80:
      put(0, 0)
    case ..<0x800:
      put(0xC0, 6)
      putNext(0)
    case ..<0x10000:
      put(0xE0, 12)
      putNext(6)
      putNext(0)
    default:
      put(0xF0, 18)
      putNext(12)
      putNext(6)
      putNext(0)
    }
  }

  var hasFailed: Bool { data.hasFailed }

  consuming func finish() -> DataObject? { data.finish() }
}

/// Writes UTF-16 with a byte order mark in front.
struct UTF16Writer: TextWriter, ~Copyable {
  private var data: DataWriter
  private let isLittle: Bool

  /// - Parameter estimate: about how many bytes are going to be written.
  init(_ order: ByteOrder, estimate: Int) {
    data = DataWriter(estimate: estimate)
    isLittle = order == .little
    write(TextCode.mark)
  }

  @inline(__always)
  mutating func write(_ scalar: UInt32) {
    if scalar < 0x10000 {
      put(scalar)
    } else {
      put(0xD800 + (scalar - 0x10000) >> 10)
      put(0xDC00 + scalar & 0x3FF)
    }
  }

  @inline(__always)
  private mutating func put(_ unit: UInt32) {
    guard let target = data.place(for: 2) else { return }
    let (low, high) = (UInt8(truncatingIfNeeded: unit), UInt8(truncatingIfNeeded: unit >> 8))
    target[0] = isLittle ? low : high
    target[1] = isLittle ? high : low
  }

  var hasFailed: Bool { data.hasFailed }

  consuming func finish() -> DataObject? { data.finish() }
}
