/// Text that another process or a file has chosen: labels, names of threads and tasks, paths.
///
/// Such text may contain sequences that move the cursor, change the window's title or begin a line that looks like one of
/// ours. Each output cleans it once, where it leaves the command.
enum ForeignText {
  /// One line for a terminal: control characters and ends of lines become question marks. Invisible characters are left
  /// out, among them those that reverse the direction of the line.
  static func line(_ text: String) -> String {
    guard !text.unicodeScalars.allSatisfy({ $0.isASCII && $0.value >= 32 && $0.value != 127 }) else {
      return text
    }
    var cleaned = String.UnicodeScalarView()
    for scalar in text.unicodeScalars {
      switch scalar.effect {
      case .none: cleaned.append(scalar)
      case .control: cleaned.append("?")
      case .invisible: break
      }
    }
    return String(cleaned)
  }

  /// The inside of a string of JSON. What a terminal would obey is escaped, too, and so is the character that could end a
  /// script element.
  static func json(_ text: String) -> String {
    let isPlain = text.utf8.allSatisfy {
      switch $0 {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "<"): false
      default: (32..<127).contains($0)
      }
    }
    if isPlain { return text }
    var escaped = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": escaped += "\\\""
      case "\\": escaped += "\\\\"
      case "\n": escaped += "\\n"
      case "\t": escaped += "\\t"
      case _ where scalar == "<" || scalar.effect != .none:
        for unit in String(scalar).utf16 {
          let hex = String(unit, radix: 16)
          escaped += "\\u" + String(repeating: "0", count: 4 - hex.count) + hex
        }
      default: escaped.unicodeScalars.append(scalar)
      }
    }
    return escaped
  }
}

extension Unicode.Scalar {
  enum Effect {
    case none, control, invisible
  }

  /// What it does to a terminal besides being shown.
  var effect: Effect {
    if isASCII { return value < 32 || value == 127 ? .control : .none }
    switch properties.generalCategory {
    case .control, .lineSeparator, .paragraphSeparator, .surrogate: return .control
    case .format: return .invisible
    default: return .none
    }
  }
}
