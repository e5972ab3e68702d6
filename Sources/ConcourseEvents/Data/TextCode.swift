/// An encoding of text.
enum TextCode: Equatable {
  case utf8
  case utf16(ByteOrder)

  /// The byte order mark as a scalar. Inside a text it is a space without width.
  static let mark: UInt32 = 0xFEFF

  /// The byte order mark in this encoding.
  private var markBytes: [UInt8] {
    switch self {
    case .utf8: [0xEF, 0xBB, 0xBF]
    case .utf16(.little): [0xFF, 0xFE]
    case .utf16(.big): [0xFE, 0xFF]
    }
  }

  /// The encoding that the byte order mark at the start of some data names; UTF-8 without one.
  static func marked(in data: DataObject) -> TextCode {
    for code in [TextCode.utf16(.little), .utf16(.big)] where data.begins(with: code.markBytes) {
      return code
    }
    return .utf8
  }

  /// The text of `data` in another encoding; nil when it is malformed or the system has no memory.
  static func convert(_ data: DataObject, from source: TextCode, to target: TextCode) -> DataObject? {
    guard let text = source.text(of: data) else { return nil }
    guard text.count > 0 else { return .empty }
    switch (source, target) {
    case (.utf8, .utf8):
      return isUTF8(text) ? text : nil
    case (.utf8, .utf16(let order)):
      return write(text, UTF8Reader(), UTF16Writer(order, estimate: text.count &* 2))
    case (.utf16(let order), .utf8):
      return write(text, UTF16Reader(order), UTF8Writer(estimate: text.count))
    case (.utf16(let source), .utf16(let order)):
      return write(text, UTF16Reader(source), UTF16Writer(order, estimate: text.count))
    }
  }

  /// The data without its byte order mark; nil if the mark is that of the other byte order, since no such character
  /// exists.
  private func text(of data: DataObject) -> DataObject? {
    let isSwapped =
      switch self {
      case .utf8: false
      case .utf16(.little): data.begins(with: TextCode.utf16(.big).markBytes)
      case .utf16(.big): data.begins(with: TextCode.utf16(.little).markBytes)
      }
    if isSwapped { return nil }
    return data.begins(with: markBytes) ? data.subrange(markBytes.count..<data.count) : data
  }

  private static func write<Writer: TextWriter & ~Copyable>(
    _ text: DataObject, _ reader: consuming some TextReader, _ writer: consuming Writer
  ) -> DataObject? {
    let isWellFormed = text.visitBytes { bytes in
      reader.read(bytes) { scalar in writer.write(scalar) } && !writer.hasFailed
    }
    return isWellFormed && reader.isAtBoundary ? writer.finish() : nil
  }

  private static func isUTF8(_ text: DataObject) -> Bool {
    var reader = UTF8Reader()
    return text.visitBytes { bytes in reader.read(bytes) { _ in } } && reader.isAtBoundary
  }
}

/// Which byte of a unit comes first.
enum ByteOrder {
  case little, big
}

extension DataObject {
  /// Whether these are the first bytes.
  fileprivate final func begins(with bytes: [UInt8]) -> Bool {
    guard count >= bytes.count else { return false }
    var start = [UInt8](repeating: 0, count: bytes.count)
    start.withUnsafeMutableBytes { copy(0..<bytes.count, to: $0.baseAddress!) }
    return start == bytes
  }
}

// MARK: - Readers

/// Reads one encoding of text, region by region: a scalar may begin in one region and end in another.
protocol TextReader {
  /// Calls `body` with each scalar that ends in `bytes`.
  /// - Returns: false if the text is malformed.
  mutating func read(_ bytes: UnsafeRawBufferPointer, _ body: (UInt32) -> Void) -> Bool
  /// Whether every scalar that has begun has ended.
  var isAtBoundary: Bool { get }
}

/// Reads UTF-8 as the Unicode standard defines it: only the shortest form of each scalar, no surrogates, nothing above
/// U+10FFFF.
struct UTF8Reader: TextReader {
  /// The bits of the scalar that has begun.
  private var bits: UInt32 = 0
  /// How many bytes of it are missing.
  private var missing = 0
  /// The limits of the next byte. Those of the second byte exclude scalars with a shorter form, surrogates and scalars
  /// that are too large.
  private var lowest: UInt8 = 0x80
  private var highest: UInt8 = 0xBF

  var isAtBoundary: Bool { missing == 0 }

  @inline(__always)
  mutating func read(_ bytes: UnsafeRawBufferPointer, _ body: (UInt32) -> Void) -> Bool {
    for byte in bytes {
      if missing == 0 {
        if byte < 0x80 {
          body(UInt32(byte))
        } else if !begin(byte) {
          return false
        }
      } else {
        guard byte >= lowest && byte <= highest else { return false }
        (lowest, highest) = (0x80, 0xBF)
        bits = bits << 6 | UInt32(byte & 0x3F)
        missing &-= 1
        if missing == 0 { body(bits) }
      }
    }
    return true
  }

  private mutating func begin(_ byte: UInt8) -> Bool {
    switch byte {
    case 0xC2...0xDF: (bits, missing) = (UInt32(byte & 0x1F), 1)
    case 0xE0...0xEF: (bits, missing) = (UInt32(byte & 0x0F), 2)
    case 0xF0...0xF4: (bits, missing) = (UInt32(byte & 0x07), 3)
    default: return false
    }
    switch byte {
    case 0xE0: lowest = 0xA0
    case 0xED: highest = 0x9F
    case 0xF0: lowest = 0x90
    case 0xF4: highest = 0x8F
    default: break
    }
    return true
  }
}

/// Reads UTF-16 in either byte order, with surrogates in pairs only.
struct UTF16Reader: TextReader {
  private let order: ByteOrder
  /// The first byte of a unit whose second byte is missing.
  private var firstByte: UInt8?
  /// The first unit of a pair whose second unit is missing.
  private var highSurrogate: UInt32?

  init(_ order: ByteOrder) { self.order = order }

  var isAtBoundary: Bool { firstByte == nil && highSurrogate == nil }

  @inline(__always)
  mutating func read(_ bytes: UnsafeRawBufferPointer, _ body: (UInt32) -> Void) -> Bool {
    for byte in bytes {
      guard let first = firstByte else {
        firstByte = byte
        continue
      }
      firstByte = nil
      let unit =
        switch order {
        case .little: UInt32(byte) << 8 | UInt32(first)
        case .big: UInt32(first) << 8 | UInt32(byte)
        }
      switch (highSurrogate, unit) {
      case (nil, 0xD800...0xDBFF):
        highSurrogate = unit
      case (let high?, 0xDC00...0xDFFF):
        highSurrogate = nil
        body(0x10000 + (high & 0x3FF) << 10 + unit & 0x3FF)
      case (_?, _), (nil, 0xDC00...0xDFFF):
        return false
      case (nil, _):
        body(unit)
      }
    }
    return true
  }
}

// MARK: - Writers

/// Writes the scalars of a text in one encoding.
protocol TextWriter: ~Copyable {
  mutating func write(_ scalar: UInt32)
  /// Whether the system had no memory; everything written after that is dropped.
  var hasFailed: Bool { get }
  /// The text; nil when the system had no memory for it.
  consuming func finish() -> DataObject?
}

/// Writes UTF-8, without a byte order mark.
struct UTF8Writer: TextWriter, ~Copyable {
  private var data: DataWriter

  /// - Parameter estimate: about how many bytes will be written.
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
  // Not `let`: with that, Swift 6.2 refuses the call of a mutating method in `init`.
  private var isLittle: Bool

  /// - Parameter estimate: about how many bytes will be written.
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
