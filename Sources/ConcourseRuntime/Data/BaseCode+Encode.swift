// From bytes to characters.

extension BaseCode {
  /// The characters that stand for `data`. Nil when the system has no memory.
  func encode(_ data: DataObject) -> DataObject? {
    guard data.count > 0 else { return data }
    // The number of characters may exceed Int.max; there is no memory for that either.
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
        if group.count == shape.bytes { write(&group, to: &writer) }
      }
      return !writer.hasFailed
    }
    if group.count > 0 { write(&group, to: &writer) }
    return writer.finish()
  }

  /// Encodes the whole groups at the start of `bytes`: all but what a border of regions cuts.
  /// - Returns: how many bytes those have.
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

  /// Writes the characters of a group, which may be the last and not full, and begins the next one.
  private func write(_ group: inout Group, to writer: inout DataWriter) {
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
