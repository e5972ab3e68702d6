/// A line of the screen: pieces of text, each in a style.
struct ScreenLine {
  enum Style {
    case plain, bold, dim, title, heading, good, warning, alarm, selected

    fileprivate var attributes: String {
      switch self {
      case .plain, .good, .warning: ""
      case .bold, .heading, .alarm: "1"
      case .dim: "2"
      case .title, .selected: "7"
      }
    }

    fileprivate var colour: String {
      switch self {
      case .plain, .bold, .dim, .title, .selected: ""
      case .heading: "36"
      case .good: "32"
      case .warning: "33"
      case .alarm: "31"
      }
    }
  }

  /// What the terminal can show.
  struct Abilities: Equatable {
    var hasAttributes = false
    var hasColours = false
    /// Whether it shows more than ASCII.
    var isUnicode = true

    static let none = Abilities()
  }

  private(set) var pieces: [(text: String, style: Style)] = []
  private(set) var width = 0

  init(_ text: String = "", _ style: Style = .plain) { add(text, style) }

  mutating func add(_ text: String, _ style: Style = .plain) {
    guard !text.isEmpty else { return }
    pieces.append((text, style))
    width += DisplayText.width(text)
  }

  /// The line with escape sequences, at most `limit` columns wide.
  func text(_ abilities: Abilities, limit: Int) -> String {
    var result = ""
    var left = limit
    for (text, style) in pieces {
      var text = DisplayText.fit(text, left, abilities, pads: false)
      left -= DisplayText.width(text)
      let codes = [
        abilities.hasAttributes ? style.attributes : "", abilities.hasColours ? style.colour : "",
      ].filter { !$0.isEmpty }
      if !codes.isEmpty && !text.isEmpty { text = "\u{1B}[\(codes.joined(separator: ";"))m\(text)\u{1B}[0m" }
      result += text
    }
    guard !abilities.hasAttributes else { return result }
    while result.utf8.last == UInt8(ascii: " ") { result.removeLast() }
    return result
  }
}

/// Text as a terminal shows it, in columns. The C library's `wcwidth` needs a locale that may not be installed.
enum DisplayText {
  static func width(_ text: String) -> Int {
    if text.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) { return text.utf8.count }
    return text.unicodeScalars.reduce(0) { $0 + width($1) }
  }

  /// 0 for combining and invisible characters, 2 for East Asian wide ones and pictures.
  private static func width(_ scalar: Unicode.Scalar) -> Int {
    switch scalar.value {
    case 0x20..<0x7F: return 1
    case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0x4DBF, 0x4E00...0xA4CF, 0xA960...0xA97F,
      0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6,
      0x1F300...0x1F64F, 0x1F680...0x1F6FF, 0x1F900...0x1F9FF, 0x20000...0x3FFFD:
      return 2
    default:
      switch scalar.properties.generalCategory {
      case .nonspacingMark, .enclosingMark, .format: return 0
      default: return 1
      }
    }
  }

  /// The text cut to a number of columns, and filled with spaces up to it. Control characters become question marks.
  static func fit(
    _ text: String, _ columns: Int, _ abilities: ScreenLine.Abilities, pads: Bool = true, right: Bool = false
  ) -> String {
    var cleaned = ""
    for scalar in text.unicodeScalars {
      switch scalar.effect {
      case .control: cleaned += "?"
      case .invisible: break
      case .none:
        if abilities.isUnicode || scalar.isASCII {
          cleaned.unicodeScalars.append(scalar)
        } else {
          cleaned += replacement(scalar)
        }
      }
    }
    var width = width(cleaned)
    if width > columns {
      guard columns > 0 else { return "" }
      var kept = ""
      var used = 0
      for scalar in cleaned.unicodeScalars {
        let next = Self.width(scalar)
        if used + next > columns - 1 { break }
        kept.unicodeScalars.append(scalar)
        used += next
      }
      cleaned = kept + (abilities.isUnicode ? "…" : "~")
      width = used + 1
    }
    guard pads, width < columns else { return cleaned }
    let spaces = String(repeating: " ", count: columns - width)
    return right ? spaces + cleaned : cleaned + spaces
  }

  /// As `fit`, but cut in the middle: the ends of labels such as com.example.images tell more.
  static func fitEnds(_ text: String, _ columns: Int, _ abilities: ScreenLine.Abilities) -> String {
    let whole = fit(text, .max, abilities, pads: false)
    guard width(whole) > columns, columns > 8 else { return fit(text, columns, abilities) }
    var end = String.UnicodeScalarView()
    var used = 0
    for scalar in whole.unicodeScalars.reversed() {
      used += width(scalar)
      if used > columns * 3 / 5 { break }
      end.insert(scalar, at: end.startIndex)
    }
    let isDigit = { (scalar: Unicode.Scalar) in ("0"..."9").contains(scalar) || scalar == "." }
    // Of a number that the cut goes through nothing is left: its other digits would be another number.
    if let before = whole.unicodeScalars.dropLast(end.count).last, isDigit(before) {
      end.removeSubrange(..<(end.firstIndex { !isDigit($0) } ?? end.endIndex))
    }
    let tail = String(end)
    // Ends with the sign of the cut.
    var head = fit(whole, columns - width(tail), abilities, pads: false).unicodeScalars
    let sign = head.removeLast()
    if let next = whole.unicodeScalars.dropFirst(head.count).first, isDigit(next) {
      while let last = head.last, isDigit(last) { head.removeLast() }
    }
    head.append(sign)
    return fit(String(head) + tail, columns, abilities)
  }

  private static func replacement(_ scalar: Unicode.Scalar) -> String {
    switch scalar {
    case "…": "~"
    case "·": "-"
    case "↓": "*"
    case "▌", "█", "▆", "▇": "#"
    case "▁", "▂", "▃": "."
    case "▄", "▅": ":"
    default: String(repeating: "?", count: width(scalar))
    }
  }
}
