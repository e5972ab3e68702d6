/// Writes bytes as a JSON string. JSON is Unicode and a line need not be: each byte that is not part of
/// valid UTF-8 becomes U+FFFD.
enum JSONText {
  private static let digits = Bytes("0123456789abcdef".utf8)

  static func append(_ text: some Sequence<UInt8>, to output: inout Bytes) {
    output.append(UInt8(ascii: "\""))
    for scalar in String(decoding: Array(text), as: UTF8.self).unicodeScalars {
      switch scalar {
      case "\"", "\\": output += [UInt8(ascii: "\\"), UInt8(scalar.value)]
      case "\t": output += Bytes("\\t".utf8)
      case "\u{0}"..."\u{1F}", "\u{7F}":
        output += Bytes("\\u00".utf8)
        output += [digits[Int(scalar.value >> 4)], digits[Int(scalar.value & 15)]]
      default: output += UTF8.encode(scalar)!
      }
    }
    output.append(UInt8(ascii: "\""))
  }
}
