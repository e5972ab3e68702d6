import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

/// Base 32 and base 64: the vectors of RFC 4648 and what is not well-formed.
@Suite("Data in base 32 and base 64")
struct BaseCodeTests {
  @Test(
    "Test vectors",
    arguments: [
      ("", "", "", ""),
      ("f", "MY======", "CO======", "Zg=="),
      ("fo", "MZXQ====", "CPNG====", "Zm8="),
      ("foo", "MZXW6===", "CPNMU===", "Zm9v"),
      ("foob", "MZXW6YQ=", "CPNMUOG=", "Zm9vYg=="),
      ("fooba", "MZXW6YTB", "CPNMUOJ1", "Zm9vYmE="),
      ("foobar", "MZXW6YTBOI======", "CPNMUOJ1E8======", "Zm9vYmFy"),
    ])
  func vectors(plain: String, base32: String, base32hex: String, base64: String) {
    for (format, encoded) in [
      (DataFormat.base32, base32), (.base32hex, base32hex), (.base64, base64),
    ] {
      #expect(data(plain).transformed(from: .none, to: format)?.text == encoded)
      #expect(data(encoded).transformed(from: format, to: .none)?.text == plain)
    }
  }

  @Test("Every character of each alphabet")
  func alphabets() {
    let base64 = data("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
    let base32 = data("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
    let base32hex = data("0123456789ABCDEFGHIJKLMNOPQRSTUV")
    for (alphabet, format) in [(base64, DataFormat.base64), (base32, .base32), (base32hex, .base32hex)] {
      let bytes = alphabet.transformed(from: format, to: .none)
      #expect(bytes?.transformed(from: .none, to: format)?.text == alphabet.text)
      // The values of the characters are 0, 1, 2, …, so the bits are those numbers.
      let width = format == .base64 ? 6 : 5
      #expect(
        bits(of: bytes?.bytes ?? [], width: 8) == bits(of: Array(0..<UInt8(alphabet.count)), width: width))
      // All others are invalid, except padding and white space.
      let known = Set(alphabet.bytes + Array("= \t\r\n".utf8))
      let rest = String(repeating: "A", count: format == .base64 ? 3 : 7).utf8
      for byte in UInt8.min...UInt8.max where !known.contains(byte) {
        #expect(data([byte] + rest).transformed(from: format, to: .none) == nil, "\(byte)")
      }
    }
  }

  /// The lowest bits of each number, the highest of them first.
  private func bits(of numbers: [UInt8], width: Int) -> [UInt8] {
    var bits: [UInt8] = []
    for number in numbers {
      for place in (0..<width).reversed() { bits.append(number >> place & 1) }
    }
    return bits
  }

  @Test(
    "White space between characters does not count",
    arguments: [
      "Zm9v Yg==", " Zm9vYg==", "Zm9vYg== ", "Zm9vYg= =", "Z\tm9vYg==", "Zm9v\nYg==\n", "Zm9v\r\nYg==\r\n",
    ])
  func whiteSpace(text: String) {
    #expect(data(text).transformed(from: .base64, to: .none)?.text == "foob")
  }

  @Test("White space alone is empty data") func onlyWhiteSpace() {
    #expect(data(" \r\n").transformed(from: .base64, to: .none)?.object === DataObject.empty)
  }

  @Test(
    "Malformed base 64",
    arguments: [
      // Incomplete, so perhaps truncated.
      "Z", "Zg", "Zm8", "Zg=", "Zm9vZ", "Zm9vZg=", "=", "==", "===",
      // Padding in the middle, too much of it, or padding alone.
      "====", "Z===", "Zm=v", "Zg==Zg==", "Zg==Zm9v", "Zm8==", "Zm9v=", "Zm9v====", "Zg===", "Zg== =",
      // Characters of other alphabets.
      "Zm9v!", "Z-_v", "Zm9\u{B}v", "Zm9\u{0}",
    ])
  func malformedBase64(text: String) {
    #expect(data(text).transformed(from: .base64, to: .none) == nil)
    #expect(data(text).transformed(from: .base64, to: .base64) == nil)
  }

  @Test(
    "Malformed base 32",
    arguments: [
      "M", "MY", "MY=====", "MZXW6YT", "MZXW6YTBM", "========", "M=======", "MZX=====", "MZXW6Y==",
      "MZXW6Y=B", "MY======MY======", "MZXW6YTB=", "MZXW6YTB========", "my======", "MZXW6YT1",
    ])
  func malformedBase32(text: String) {
    #expect(data(text).transformed(from: .base32, to: .none) == nil)
  }

  @Test("Bits beyond the last whole byte are ignored") func looseBits() {
    #expect(data("Zh==").transformed(from: .base64, to: .none)?.text == "f")
    #expect(data("Zm9=").transformed(from: .base64, to: .none)?.text == "fo")
    #expect(data("MZ======").transformed(from: .base32, to: .none)?.text == "f")
  }

  @Test("Groups that straddle regions") func straddling() {
    #expect(data(regions: "Z", "m", "8", "=").transformed(from: .base64, to: .none)?.text == "fo")
    #expect(data(regions: "Zg=", "=").transformed(from: .base64, to: .none)?.text == "f")
    #expect(data(regions: "Zg=", "=", "=").transformed(from: .base64, to: .none) == nil)
    #expect(data(regions: "fo", "o", "bar").transformed(from: .none, to: .base32)?.text == "MZXW6YTBOI======")
  }
}
