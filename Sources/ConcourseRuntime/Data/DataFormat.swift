/// What the bytes of some data stand for, as far as `DataObject.transform` can tell one form from another.
///
/// Matching C objects: `DISPATCH_DATA_FORMAT_TYPE_…`.
package enum DataFormat: Sendable, CaseIterable {
  /// Bytes that stand for themselves.
  case none
  /// Bytes in groups of five bits, as letters A–Z and digits 2–7.
  case base32
  /// The same with the digits 0–9 and the letters A–V, which sort as the bytes do.
  case base32hex
  /// Bytes in groups of six bits, as letters, digits, `+` and `/`.
  case base64
  /// Text in UTF-8.
  case utf8
  /// Text in UTF-16, the low byte of each unit first.
  case utf16le
  /// Text in UTF-16, the high byte of each unit first.
  case utf16be
  /// Text in whichever of the three its byte order mark says; UTF-8 without one. A source only.
  case utfAny

  /// What a format is about: nothing leads from one kind to the other.
  enum Kind {
    case bytes(BaseCode?)
    case text(TextCode?)
  }

  var kind: Kind {
    switch self {
    case .none: .bytes(nil)
    case .base32: .bytes(.base32)
    case .base32hex: .bytes(.base32hex)
    case .base64: .bytes(.base64)
    case .utf8: .text(.utf8)
    case .utf16le: .text(.utf16(.little))
    case .utf16be: .text(.utf16(.big))
    case .utfAny: .text(nil)
    }
  }
}

/// An encoding of text.
enum TextCode: Equatable {
  case utf8
  case utf16(ByteOrder)
}

/// Which byte of a unit comes first.
enum ByteOrder {
  case little, big
}
