// Text from one encoding into another.

extension TextCode {
  /// The byte order mark as a scalar. Inside of a text it is a space without width.
  static let mark: UInt32 = 0xFEFF

  /// The encoding that the byte order mark at the start of some data tells of; UTF-8 without one.
  static func marked(in data: DataObject) -> TextCode {
    var start: (UInt8, UInt8) = (0, 0)
    if data.count >= 2 { withUnsafeMutableBytes(of: &start) { data.copy(0..<2, to: $0.baseAddress!) } }
    switch start {
    case (0xFF, 0xFE): return .utf16(.little)
    case (0xFE, 0xFF): return .utf16(.big)
    default: return .utf8
    }
  }

  /// The text of `data` in another encoding. Nil when it is malformed or the system has no memory.
  static func convert(_ data: DataObject, from source: TextCode, to target: TextCode) -> DataObject? {
    switch (source, target) {
    case (.utf8, .utf8):
      return checkedUTF8(data)
    case (.utf8, .utf16(let order)):
      var reader = UTF8Reader()
      return write(data, &reader, UTF16Writer(order, estimate: data.count &* 2))
    case (.utf16(let order), .utf8):
      var reader = UTF16Reader(order)
      return write(data, &reader, UTF8Writer(estimate: data.count))
    case (.utf16(let source), .utf16(let order)):
      var reader = UTF16Reader(source)
      return write(data, &reader, UTF16Writer(order, estimate: data.count))
    }
  }

  private static func write<Writer: TextWriter & ~Copyable>(
    _ data: DataObject, _ reader: inout some TextReader, _ writer: consuming Writer
  ) -> DataObject? {
    var isFirst = true
    let isWellFormed = data.visitBytes { bytes in
      reader.read(bytes) { scalar in
        if isFirst {
          isFirst = false
          if scalar == mark { return }
        }
        writer.write(scalar)
      } && !writer.hasFailed
    }
    guard isWellFormed && reader.isAtBoundary else { return nil }
    return writer.finish()
  }

  /// The data itself if it is text in UTF-8, but for its mark.
  private static func checkedUTF8(_ data: DataObject) -> DataObject? {
    var reader = UTF8Reader()
    var first: UInt32?
    let isWellFormed = data.visitBytes { bytes in
      reader.read(bytes) { scalar in if first == nil { first = scalar } }
    }
    guard isWellFormed && reader.isAtBoundary else { return nil }
    return first == mark ? data.subrange(3..<data.count) : data
  }
}
