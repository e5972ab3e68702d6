// From characters to bytes.

extension BaseCode {
  /// The bytes that `data` stands for. Nil when it is malformed or the system has no memory.
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
    // A group that is not full is a cut one: rather nothing than a part of the bytes.
    let isAtBoundary = group.count == 0 && (group.padding == 0 || group.isLast)
    guard isWellFormed && isAtBoundary else { return nil }
    return writer.finish()
  }

  /// Decodes the whole groups at the start of `bytes`: up to white space, padding, what is foreign, or what a
  /// border of regions cuts.
  /// - Returns: how many characters those have.
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
  /// - Returns: false if the character must not be there.
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
    return group.count + group.padding < shape.characters || write(&group, to: &writer)
  }

  /// Writes the bytes of a full group and begins the next one.
  /// - Returns: false if there is no such group: its characters make no whole bytes, or not only those.
  private func write(_ group: inout Group, to writer: inout DataWriter) -> Bool {
    let bits = group.count * shape.width
    // Less than a character's bits may be left over, else the character should not be there.
    guard bits >= 8 && bits % 8 < shape.width else { return false }
    writer.makeRoom()
    for byte in 1...bits / 8 {
      writer.put(UInt8(truncatingIfNeeded: group.bits >> (bits - byte * 8)))
    }
    group.bits = 0
    group.count = 0
    // Padding stays: it refuses whatever comes after it.
    group.isLast = group.padding > 0
    return true
  }
}
