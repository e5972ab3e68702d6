/// A value of JSON, written without Foundation. Objects keep the order of their members.
enum JSONValue {
  case null
  case bool(Bool)
  case int(Int64)
  /// Finite.
  case number(Double)
  case string(String)
  case array([JSONValue])
  case object([(String, JSONValue)])

  static func int(_ number: Int) -> JSONValue { .int(Int64(number)) }
  static func int(_ number: UInt32) -> JSONValue { .int(Int64(number)) }
  static func address(_ number: UInt64) -> JSONValue { .string("0x" + String(number, radix: 16)) }
  static func optional(_ text: String?) -> JSONValue { text.map { .string($0) } ?? .null }

  /// The text, indented by two columns a level.
  var text: String {
    var text = ""
    write(to: &text, indent: 0)
    return text
  }

  /// The text on one line.
  var line: String {
    var text = ""
    write(to: &text, indent: nil)
    return text
  }

  private func write(to text: inout String, indent: Int?) {
    let inner = indent.map { $0 + 1 }
    switch self {
    case .null: text += "null"
    case .bool(let value): text += value ? "true" : "false"
    case .int(let value): text += String(value)
    case .number(let value): text += "\(value)"
    case .string(let value): Self.write(value, to: &text)
    case .array(let values):
      Self.write(values, "[", "]", to: &text, indent) { $0.write(to: &$1, indent: inner) }
    case .object(let members):
      Self.write(members, "{", "}", to: &text, indent) {
        Self.write($0.0, to: &$1)
        $1 += ": "
        $0.1.write(to: &$1, indent: inner)
      }
    }
  }

  private static func write<Element>(
    _ elements: [Element], _ open: String, _ close: String, to text: inout String, _ indent: Int?,
    _ body: (Element, inout String) -> Void
  ) {
    text += open
    for (index, element) in elements.enumerated() {
      if index > 0 { text += "," }
      if let indent { text += "\n" + String(repeating: "  ", count: indent + 1) }
      body(element, &text)
    }
    if let indent, !elements.isEmpty { text += "\n" + String(repeating: "  ", count: indent) }
    text += close
  }

  private static func write(_ string: String, to text: inout String) {
    text += "\"\(ForeignText.json(string))\""
  }
}
