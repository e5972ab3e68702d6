// Text from one encoding into another.

extension TextCode {
  /// The byte order mark as a scalar. Inside of a text it is a space without width.
  static let mark: UInt32 = 0xFEFF

  /// What the byte order mark looks like.
  private var markBytes: [UInt8] {
    switch self {
    case .utf8: [0xEF, 0xBB, 0xBF]
    case .utf16(.little): [0xFF, 0xFE]
    case .utf16(.big): [0xFE, 0xFF]
    }
  }

  /// The encoding that the byte order mark at the start of some data tells of; UTF-8 without one.
  static func marked(in data: DataObject) -> TextCode {
    for code in [TextCode.utf16(.little), .utf16(.big)] where data.begins(with: code.markBytes) {
      return code
    }
    return .utf8
  }

  /// The text of `data` in another encoding. Nil when it is malformed or the system has no memory.
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

  /// What comes after the byte order mark, if there is one. Nil if it says that the bytes of each unit are the
  /// other way round: as a character, that mark does not exist.
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

extension DataObject {
  /// Whether these are the first bytes.
  fileprivate final func begins(with bytes: [UInt8]) -> Bool {
    guard count >= bytes.count else { return false }
    var start = [UInt8](repeating: 0, count: bytes.count)
    start.withUnsafeMutableBytes { copy(0..<bytes.count, to: $0.baseAddress!) }
    return start == bytes
  }
}
