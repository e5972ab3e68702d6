/// Bytes as printable characters, each of which stands for five or six bits; RFC 4648.
///
/// A group of characters stands for whole bytes. The last group may stand for fewer than the others, and is
/// then filled up with `=`.
struct BaseCode: Sendable {
  private let alphabet: [UInt8]
  /// What each character stands for, or one of the marks below.
  private let values: [UInt8]
  /// How many bits a character stands for, and how many characters and bytes a group has.
  private let width: Int
  private let groupCharacters: Int
  private let groupBytes: Int

  private static let padding = UInt8(ascii: "=")
  private static let isPadding: UInt8 = 0xFD
  private static let isSpace: UInt8 = 0xFE
  private static let isForeign: UInt8 = 0xFF

  static let base32 = BaseCode("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", width: 5, group: (8, 5))
  static let base32hex = BaseCode("0123456789ABCDEFGHIJKLMNOPQRSTUV", width: 5, group: (8, 5))
  static let base64 = BaseCode(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", width: 6, group: (4, 3))

  private init(_ alphabet: String, width: Int, group: (characters: Int, bytes: Int)) {
    self.alphabet = Array(alphabet.utf8)
    self.width = width
    (groupCharacters, groupBytes) = group
    var values = [UInt8](repeating: BaseCode.isForeign, count: 256)
    for (value, character) in alphabet.utf8.enumerated() { values[Int(character)] = UInt8(value) }
    // Encoded text is broken into lines in mail, some of them by CR LF.
    for space in " \t\r\n".utf8 { values[Int(space)] = BaseCode.isSpace }
    values[Int(BaseCode.padding)] = BaseCode.isPadding
    self.values = values
  }

  // MARK: From bytes to characters

  /// The characters that stand for `data`. Nil when the system has no memory.
  func encode(_ data: DataObject) -> DataObject? {
    guard data.count > 0 else { return data }
    // The number of characters may exceed Int.max; there is no memory for that either.
    let groups = data.count / groupBytes + (data.count % groupBytes == 0 ? 0 : 1)
    let (length, overflows) = groups.multipliedReportingOverflow(by: groupCharacters)
    if overflows { return nil }
    var writer = DataWriter(estimate: length)
    var bits: UInt64 = 0
    var pending = 0
    let mask = UInt64(1) << width - 1
    data.visitBytes { bytes in
      for byte in bytes {
        writer.makeRoom()
        bits = bits << 8 | UInt64(byte)
        pending &+= 8
        while pending >= width {
          pending &-= width
          writer.put(alphabet[Int(truncatingIfNeeded: bits >> pending & mask)])
        }
      }
      return !writer.hasFailed
    }
    let lastBytes = data.count % groupBytes
    if lastBytes > 0 {
      writer.makeRoom()
      if pending > 0 { writer.put(alphabet[Int(bits << (width - pending) & mask)]) }
      let written = (lastBytes * 8 + width - 1) / width
      for _ in written..<groupCharacters { writer.put(BaseCode.padding) }
    }
    return writer.finish()
  }

  // MARK: From characters to bytes

  /// The bytes that `data` stands for. Nil when it is malformed or the system has no memory.
  func decode(_ data: DataObject) -> DataObject? {
    guard data.count > 0 else { return data }
    var writer = DataWriter(estimate: data.count / groupCharacters * groupBytes + groupBytes)
    var group = Group()
    let isWellFormed = values.withUnsafeBufferPointer { values in
      data.visitBytes { bytes in
        for byte in bytes {
          let value = values[Int(byte)]
          switch value {
          case BaseCode.isSpace: continue
          case BaseCode.isForeign: return false
          case BaseCode.isPadding:
            if group.isLast { return false }
            group.padding &+= 1
          default:
            // Nothing follows padding, and a full group is begun anew.
            if group.padding > 0 { return false }
            group.bits = group.bits << width | UInt64(value)
            group.characters &+= 1
          }
          if group.characters &+ group.padding == groupCharacters {
            guard write(&group, to: &writer) else { return false }
          }
        }
        return !writer.hasFailed
      }
    }
    // A group that is not full is a cut one: rather nothing than a part of the bytes.
    let isAtBoundary = group.characters == 0 && (group.padding == 0 || group.isLast)
    guard isWellFormed && isAtBoundary else { return nil }
    return writer.finish()
  }

  /// Characters that have not made a full group yet.
  private struct Group {
    var bits: UInt64 = 0
    var characters = 0
    var padding = 0
    /// A padded group has been written: no other may follow.
    var isLast = false
  }

  /// Writes the bytes of a full group and begins the next one.
  /// - Returns: false if there is no such group: its characters make no whole bytes, or not only those.
  private func write(_ group: inout Group, to writer: inout DataWriter) -> Bool {
    let bits = group.characters * width
    // Less than a character's bits may be left over, else the character should not be there.
    guard bits >= 8 && bits % 8 < width else { return false }
    writer.makeRoom()
    for byte in 1...bits / 8 {
      writer.put(UInt8(truncatingIfNeeded: group.bits >> (bits - byte * 8)))
    }
    group.bits = 0
    group.characters = 0
    // Padding stays: it refuses whatever comes after it.
    group.isLast = group.padding > 0
    return true
  }
}
