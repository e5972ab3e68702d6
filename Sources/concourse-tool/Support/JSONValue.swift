/// A value of JSON, written without Foundation. Objects keep the order of their members.
enum JSONValue {
  case null
  case bool(Bool)
  case int(Int64)
  /// Finite.
  case number(Double)
  /// Nanoseconds, written as microseconds with three decimals.
  case micros(UInt64)
  case string(String)
  case array([JSONValue])
  case object([(String, JSONValue)])

  static func int(_ number: Int) -> JSONValue { .int(Int64(number)) }
  static func int(_ number: Int32) -> JSONValue { .int(Int64(number)) }
  static func int(_ number: UInt32) -> JSONValue { .int(Int64(number)) }
  static func int(_ number: UInt64) -> JSONValue { .int(Int64(clamping: number)) }
  static func address(_ number: UInt64) -> JSONValue { .string("0x" + String(number, radix: 16)) }
  static func optional(_ text: String?) -> JSONValue { text.map { .string($0) } ?? .null }
  static func strings(_ texts: [String]) -> JSONValue { .array(texts.map { .string($0) }) }

  /// The text, indented by two columns a level.
  var text: String {
    var output: [UInt8] = []
    write(to: &output, indent: 0)
    return String(decoding: output, as: UTF8.self)
  }

  /// The text on one line.
  var line: String {
    var output: [UInt8] = []
    write(to: &output)
    return String(decoding: output, as: UTF8.self)
  }

  /// - Parameter indent: The level; nil for one line.
  func write(to output: inout [UInt8], indent: Int? = nil) {
    let inner = indent.map { $0 + 1 }
    switch self {
    case .null: output += "null".utf8
    case .bool(let value): output += (value ? "true" : "false").utf8
    case .int(let value): output += String(value).utf8
    case .number(let value): output += "\(value)".utf8
    case .micros(let value):
      let digits = String(value % 1000)
      output += String(value / 1000).utf8
      output.append(UInt8(ascii: "."))
      output += repeatElement(UInt8(ascii: "0"), count: 3 - digits.utf8.count)
      output += digits.utf8
    case .string(let value): Self.write(value, to: &output)
    case .array(let values):
      Self.write(values, UInt8(ascii: "["), UInt8(ascii: "]"), to: &output, indent) {
        $0.write(to: &$1, indent: inner)
      }
    case .object(let members):
      Self.write(members, UInt8(ascii: "{"), UInt8(ascii: "}"), to: &output, indent) {
        Self.write($0.0, to: &$1)
        $1 += (indent == nil ? ":" : ": ").utf8
        $0.1.write(to: &$1, indent: inner)
      }
    }
  }

  private static func write<Element>(
    _ elements: [Element], _ open: UInt8, _ close: UInt8, to output: inout [UInt8], _ indent: Int?,
    _ body: (Element, inout [UInt8]) -> Void
  ) {
    func newLine(_ level: Int, _ output: inout [UInt8]) {
      output += "\n".utf8
      output += repeatElement(UInt8(ascii: " "), count: 2 * level)
    }
    output.append(open)
    for (index, element) in elements.enumerated() {
      if index > 0 { output.append(UInt8(ascii: ",")) }
      if let indent { newLine(indent + 1, &output) }
      body(element, &output)
    }
    if let indent, !elements.isEmpty { newLine(indent, &output) }
    output.append(close)
  }

  private static func write(_ string: String, to output: inout [UInt8]) {
    output.append(UInt8(ascii: "\""))
    output += ForeignText.json(string).utf8
    output.append(UInt8(ascii: "\""))
  }
}
