/// An encoding of bytes as printable characters of five or six bits each; RFC 4648.
///
/// A group of characters encodes whole bytes. The last group may encode fewer than the others; it is then padded with
/// `=`.
struct BaseCode: Sendable {
  /// How many bits a character has, and how many characters and bytes a group.
  ///
  /// There are two shapes. Loops over whole groups are inlined where the shape is a constant, and so compiled for each.
  struct Shape: Sendable, Equatable {
    let width: Int
    let characters: Int
    let bytes: Int

    static let five = Shape(width: 5, characters: 8, bytes: 5)
    static let six = Shape(width: 6, characters: 4, bytes: 3)

    /// The value of a character of a full group.
    @inline(__always)
    func value(_ character: Int, of bits: UInt64) -> Int {
      Int(truncatingIfNeeded: bits &>> UInt64(width &* (characters &- 1 &- character))) & (1 &<< width &- 1)
    }
  }

  /// The characters or bytes of an incomplete group.
  struct Group {
    var bits: UInt64 = 0
    var count = 0
    /// Padding characters.
    var padding = 0
    /// Whether a padded group has been written, after which none may follow.
    var isLast = false
  }

  let shape: Shape
  let alphabet: [UInt8]
  /// The value of each character, or one of the marks below.
  let values: [UInt8]

  static let padding = UInt8(ascii: "=")
  static let isPadding: UInt8 = 0xFD
  static let isSpace: UInt8 = 0xFE
  static let isForeign: UInt8 = 0xFF
  /// A bit that is set in all marks and in no value of a character.
  static let marks: UInt8 = 0x80

  static let base32 = BaseCode("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", .five)
  static let base32hex = BaseCode("0123456789ABCDEFGHIJKLMNOPQRSTUV", .five)
  static let base64 = BaseCode("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", .six)

  private init(_ alphabet: String, _ shape: Shape) {
    self.shape = shape
    self.alphabet = Array(alphabet.utf8)
    var values = [UInt8](repeating: BaseCode.isForeign, count: 256)
    for (value, character) in alphabet.utf8.enumerated() { values[Int(character)] = UInt8(value) }
    // In mail, encoded text is broken into lines, some of which end in CR LF.
    for space in " \t\r\n".utf8 { values[Int(space)] = BaseCode.isSpace }
    values[Int(BaseCode.padding)] = BaseCode.isPadding
    self.values = values
  }
}

// MARK: - Encoding

extension BaseCode {
  /// The characters that encode `data`; nil when the system has no memory.
  func encode(_ data: DataObject) -> DataObject? {
    guard data.count > 0 else { return data }
    // More than `Int.max` characters would not fit into memory either.
    let groups = data.count / shape.bytes + (data.count % shape.bytes == 0 ? 0 : 1)
    let (length, overflows) = groups.multipliedReportingOverflow(by: shape.characters)
    if overflows { return nil }
    var writer = DataWriter(estimate: length)
    var group = Group()
    data.visitBytes { bytes in
      var place = 0
      while place < bytes.count && !writer.hasFailed {
        if group.count == 0 {
          place += encodeGroups(UnsafeRawBufferPointer(rebasing: bytes[place...]), &writer)
          if place == bytes.count { break }
        }
        group.bits = group.bits << 8 | UInt64(bytes[place])
        group.count += 1
        place += 1
        if group.count == shape.bytes { writeCharacters(of: &group, to: &writer) }
      }
      return !writer.hasFailed
    }
    if group.count > 0 { writeCharacters(of: &group, to: &writer) }
    return writer.finish()
  }

  /// Encodes the whole groups at the start of `bytes`; the rest of a group may be in the next region.
  /// - Returns: how many bytes they have.
  private func encodeGroups(_ bytes: UnsafeRawBufferPointer, _ writer: inout DataWriter) -> Int {
    alphabet.withUnsafeBufferPointer { alphabet in
      shape == .six
        ? BaseCode.encodeGroups(bytes, alphabet, Shape(width: 6, characters: 4, bytes: 3), &writer)
        : BaseCode.encodeGroups(bytes, alphabet, Shape(width: 5, characters: 8, bytes: 5), &writer)
    }
  }

  @inline(__always)
  private static func encodeGroups(
    _ bytes: UnsafeRawBufferPointer, _ alphabet: UnsafeBufferPointer<UInt8>, _ shape: Shape,
    _ writer: inout DataWriter
  ) -> Int {
    var place = 0
    while bytes.count &- place >= shape.bytes {
      var bits: UInt64 = 0
      for byte in 0..<shape.bytes { bits = bits &<< 8 | UInt64(bytes[place &+ byte]) }
      place &+= shape.bytes
      guard let target = writer.place(for: shape.characters) else { break }
      for character in 0..<shape.characters {
        target[character] = alphabet[shape.value(character, of: bits)]
      }
    }
    return place
  }

  /// Writes the characters of a group, which may be incomplete if it is the last, and begins the next one.
  private func writeCharacters(of group: inout Group, to writer: inout DataWriter) {
    let bits = group.bits << (8 * (shape.bytes - group.count))
    let used = (group.count * 8 + shape.width - 1) / shape.width
    if let target = writer.place(for: shape.characters) {
      for character in 0..<shape.characters {
        target[character] = character < used ? alphabet[shape.value(character, of: bits)] : BaseCode.padding
      }
    }
    group = Group()
  }
}

// MARK: - Decoding

extension BaseCode {
  /// The bytes that `data` encodes; nil when it is malformed or the system has no memory.
  func decode(_ data: DataObject) -> DataObject? {
    guard data.count > 0 else { return data }
    var writer = DataWriter(estimate: data.count / shape.characters * shape.bytes + shape.bytes)
    var group = Group()
    let isWellFormed = data.visitBytes { bytes in
      var place = 0
      while place < bytes.count && !writer.hasFailed {
        if group.count == 0 && group.padding == 0 {
          place += decodeGroups(UnsafeRawBufferPointer(rebasing: bytes[place...]), &writer)
          if place == bytes.count { break }
        }
        guard take(values[Int(bytes[place])], into: &group, &writer) else { return false }
        place += 1
      }
      return !writer.hasFailed
    }
    // An incomplete group means that the end is missing: nil rather than a part of the bytes.
    let isAtBoundary = group.count == 0 && (group.padding == 0 || group.isLast)
    guard isWellFormed && isAtBoundary else { return nil }
    return writer.finish()
  }

  /// Decodes the whole groups at the start of `bytes`, up to white space, padding, a foreign character or a group that
  /// continues in the next region.
  /// - Returns: how many characters they have.
  private func decodeGroups(_ bytes: UnsafeRawBufferPointer, _ writer: inout DataWriter) -> Int {
    values.withUnsafeBufferPointer { values in
      shape == .six
        ? BaseCode.decodeGroups(bytes, values, Shape(width: 6, characters: 4, bytes: 3), &writer)
        : BaseCode.decodeGroups(bytes, values, Shape(width: 5, characters: 8, bytes: 5), &writer)
    }
  }

  @inline(__always)
  private static func decodeGroups(
    _ bytes: UnsafeRawBufferPointer, _ values: UnsafeBufferPointer<UInt8>, _ shape: Shape,
    _ writer: inout DataWriter
  ) -> Int {
    var place = 0
    while bytes.count &- place >= shape.characters {
      var marks: UInt8 = 0
      var bits: UInt64 = 0
      for character in 0..<shape.characters {
        let value = values[Int(bytes[place &+ character])]
        marks |= value
        bits = bits &<< UInt64(shape.width) | UInt64(value)
      }
      if marks & BaseCode.marks != 0 { break }
      place &+= shape.characters
      guard let target = writer.place(for: shape.bytes) else { break }
      for byte in 0..<shape.bytes {
        target[byte] = UInt8(truncatingIfNeeded: bits &>> UInt64(8 &* (shape.bytes &- 1 &- byte)))
      }
    }
    return place
  }

  /// Adds a character to a group, and writes the group when it is full.
  /// - Returns: false if the character is not allowed there.
  private func take(_ value: UInt8, into group: inout Group, _ writer: inout DataWriter) -> Bool {
    switch value {
    case BaseCode.isSpace: return true
    case BaseCode.isForeign: return false
    case BaseCode.isPadding:
      if group.isLast { return false }
      group.padding += 1
    default:
      // Nothing follows padding.
      if group.padding > 0 { return false }
      group.bits = group.bits << shape.width | UInt64(value)
      group.count += 1
    }
    return group.count + group.padding < shape.characters || writeBytes(of: &group, to: &writer)
  }

  /// Writes the bytes of a full group and begins the next one.
  /// - Returns: false if its characters do not make whole bytes.
  private func writeBytes(of group: inout Group, to writer: inout DataWriter) -> Bool {
    let bits = group.count * shape.width
    // As many bits as a character has may not be left over.
    guard bits >= 8 && bits % 8 < shape.width else { return false }
    writer.makeRoom()
    for byte in 1...bits / 8 {
      writer.put(UInt8(truncatingIfNeeded: group.bits >> (bits - byte * 8)))
    }
    group.bits = 0
    group.count = 0
    // Padding stays, so that further characters are refused.
    group.isLast = group.padding > 0
    return true
  }
}
