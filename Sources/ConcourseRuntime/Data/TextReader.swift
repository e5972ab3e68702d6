// Unicode scalars out of bytes that come region by region: a scalar may begin in one and end in another.

/// Reads one encoding of text.
protocol TextReader {
  /// Calls `body` with each scalar that ends in `bytes`.
  /// - Returns: false if the text is malformed.
  mutating func read(_ bytes: UnsafeRawBufferPointer, _ body: (UInt32) -> Void) -> Bool
  /// Whether no scalar has begun without having ended.
  var isAtBoundary: Bool { get }
}

/// UTF-8 as the Unicode standard has it: the shortest form of each scalar and no other, no surrogates,
/// nothing above U+10FFFF.
struct UTF8Reader: TextReader {
  /// The bits of the scalar that has begun.
  private var bits: UInt32 = 0
  /// How many bytes it lacks.
  private var missing = 0
  /// What the next of them may be. The first one's limits keep out what has a shorter form, surrogates and
  /// what is too large.
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

/// UTF-16 in either byte order, with surrogates in pairs only.
struct UTF16Reader: TextReader {
  private let order: ByteOrder
  /// The first byte of a unit whose second one is to come.
  private var firstByte: UInt8?
  /// The first unit of a pair whose second one is to come.
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
