import Glibc
import Testing

@testable import ConcourseRuntime

/// Which formats lead to which, and the objects that come out.
@Suite("Data transforms")
struct DataTransformTests {
  static let byteFormats: [DataFormat] = [.none, .base32, .base32hex, .base64]
  static let textFormats: [DataFormat] = [.utf8, .utf16le, .utf16be]

  @Test("Every pair of formats", arguments: DataFormat.allCases, DataFormat.allCases)
  func pair(source: DataFormat, target: DataFormat) throws {
    let isPossible =
      Self.byteFormats.contains(source) && Self.byteFormats.contains(target)
      || (Self.textFormats + [.utfAny]).contains(source) && Self.textFormats.contains(target)
    let empty = DataObject.transform(.empty, from: source, to: target)
    #expect((empty != nil) == isPossible)
    if let empty { #expect(empty === DataObject.empty) }
    // Well-formed in all formats: eight characters of base 32, or four units of UTF-16.
    let object = data("MFRGG2DF").object
    let transformed = DataObject.transform(object, from: source, to: target)
    #expect((transformed != nil) == isPossible)
    if source == .none && target == .none { #expect(transformed === object) }
  }

  @Test("From one encoding of bytes to another")
  func recoding() {
    let texts: [DataFormat: String] = [
      .none: "foobar", .base32: "MZXW6YTBOI======", .base32hex: "CPNMUOJ1E8======", .base64: "Zm9vYmFy",
    ]
    for (source, from) in texts {
      for (target, to) in texts { #expect(data(from).transformed(from: source, to: target)?.text == to) }
    }
  }

  @Test("A long result has several regions, and is right across their borders")
  func longResult() throws {
    let bytes = counting(300_000)
    for format in Self.byteFormats {
      let encoded = try #require(data(bytes).transformed(from: .none, to: format))
      let decoded = try #require(encoded.transformed(from: format, to: .none))
      encoded.expectSoundness()
      decoded.expectSoundness()
      #expect(decoded.bytes == bytes)
    }
    let text = String(repeating: "aé€😀", count: 30_000)
    let wide = try #require(data(text).transformed(from: .utf8, to: .utf16be))
    wide.expectSoundness()
    #expect(wide.count == 2 + text.utf16.count * 2)
    #expect(try #require(wide.transformed(from: .utf16be, to: .utf8)).text == text)
  }

  @Test("A result owns its memory")
  func ownMemory() throws {
    var source: DispatchData? = data(regions: "Zm9", "vYm", "Fy")
    let decoded = try #require(source?.transformed(from: .base64, to: .none))
    source = nil
    #expect(decoded.text == "foobar")
    #expect(decoded.regions == ["0:foobar"])
  }
}

extension Crash {
  /// In a process of its own, whose memory is limited.
  @Suite("Data transforms without memory")
  struct DataTransforms {
    @Test("There is no result, and memory is not waited for", .enabled(if: !Sanitizer.isOn))
    func refused() async {
      await #expect(processExitsWith: .exitCode(7)) {
        // Four gigabytes that take one megabyte.
        var long = data([UInt8](repeating: 0x41, count: 1 << 20))
        for _ in 0..<12 { long.append(long) }
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit)
        limit.rlim_cur = rlim_t(mebibytes(ofStatistic: 0) + 2) << 20
        setrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit)
        // What the allocator has in reserve goes too, but for a little.
        var hoard: [UnsafeMutableRawPointer] = []
        hoard.reserveCapacity(1 << 14)
        while hoard.count < 1 << 14, let memory = malloc(64 << 10) { hoard.append(memory) }
        for memory in hoard.suffix(16) { free(memory) }
        let refused = [
          long.transformed(from: .none, to: .base64) == nil,
          long.transformed(from: .base32, to: .none) == nil,
          long.transformed(from: .utf8, to: .utf16le) == nil,
          long.transformed(from: .utf16be, to: .utf8) == nil,
        ]
        exit(refused.allSatisfy { $0 } ? 7 : 1)
      }
    }
  }
}

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
      // All others are foreign, but for padding and white space.
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

  @Test("White space alone stands for nothing") func onlyWhiteSpace() {
    #expect(data(" \r\n").transformed(from: .base64, to: .none)?.object === DataObject.empty)
  }

  @Test(
    "Malformed base 64",
    arguments: [
      // Not full, and so perhaps cut.
      "Z", "Zg", "Zm8", "Zg=", "Zm9vZ", "Zm9vZg=", "=", "==", "===",
      // Padding that stands in the way, is too much, or stands for nothing.
      "====", "Z===", "Zm=v", "Zg==Zg==", "Zg==Zm9v", "Zm8==", "Zm9v=", "Zm9v====", "Zg===", "Zg== =",
      // Characters of others.
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

  @Test("Bits that stand for no byte are not looked at") func looseBits() {
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
