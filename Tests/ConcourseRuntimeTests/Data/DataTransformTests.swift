import Glibc
import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

/// The formats that can be combined, and the resulting objects.
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

  @Test("A long result has several regions, and is correct across their borders")
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
    @Test("There is no result, and no wait for memory", .enabled(if: !Sanitizer.isOn))
    func refused() async {
      await #expect(processExitsWith: .exitCode(7)) {
        // Four gigabytes that take one megabyte.
        var long = data([UInt8](repeating: 0x41, count: 1 << 20))
        for _ in 0..<12 { long.append(long) }
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit)
        limit.rlim_cur = rlim_t(mebibytes(ofStatistic: 0) + 2) << 20
        setrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit)
        // Uses up almost all of the allocator's reserve too.
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

/// Random data cut at random places.
@Suite("Transforms of data in regions")
struct TransformPropertyTests {
  /// The same bytes in random regions, down to one byte.
  private func cut(_ bytes: [UInt8], _ dice: inout Dice) -> DispatchData {
    var value = DispatchData.empty
    var start = 0
    let longest = Int.random(in: 1...12, using: &dice)
    while start < bytes.count {
      let end = min(bytes.count, start + Int.random(in: 1...longest, using: &dice))
      value.append(data(bytes[start..<end]))
      start = end
    }
    return value
  }

  private func randomBytes(_ dice: inout Dice) -> [UInt8] {
    (0..<Int.random(in: 0...90, using: &dice)).map { _ in .random(in: 0...255, using: &dice) }
  }

  private func randomText(_ dice: inout Dice) -> String {
    var text = String.UnicodeScalarView()
    let ranges: [ClosedRange<UInt32>] = [
      0...0x7F, 0x80...0x7FF, 0x800...0xD7FF, 0xE000...0xFFFF, 0x10000...0x10FFFF,
    ]
    for _ in 0..<Int.random(in: 0...40, using: &dice) {
      let scalar = UInt32.random(in: ranges.randomElement(using: &dice)!, using: &dice)
      // A leading mark is not part of the text, so it would be lost.
      if scalar != 0xFEFF || !text.isEmpty { text.append(Unicode.Scalar(scalar)!) }
    }
    return String(text)
  }

  @Test("Encoding and decoding, whatever the regions", arguments: 0..<4)
  func roundTrip(run: Int) throws {
    var dice = Seed.dice(run)
    for _ in 0..<Sanitizer.shrunk(600) {
      let bytes = randomBytes(&dice)
      for format in DataTransformTests.byteFormats {
        let encoded = try #require(cut(bytes, &dice).transformed(from: .none, to: format))
        #expect(encoded.bytes == data(bytes).transformed(from: .none, to: format)?.bytes)
        let decoded = try #require(cut(encoded.bytes, &dice).transformed(from: format, to: .none))
        #expect(decoded.bytes == bytes)
      }
      let text = randomText(&dice)
      for format in [DataFormat.utf16le, .utf16be] {
        let wide = try #require(cut(Array(text.utf8), &dice).transformed(from: .utf8, to: format))
        let narrow = try #require(cut(wide.bytes, &dice).transformed(from: .utfAny, to: .utf8))
        // The generated text may be empty, and then has no mark for its encoding.
        #expect(narrow.text == text)
      }
    }
  }

  @Test("Data in regions is transformed like contiguous data, well-formed or not", arguments: 0..<4)
  func anyBytes(run: Int) {
    var dice = Seed.dice(run)
    var refused = 0
    var transformed = 0
    let formats = DataFormat.allCases
    let characters = Array("ABCD 234567=\n".utf8) + [0, 0xC3, 0xA9, 0xEF, 0xBB, 0xBF, 0xD8, 0xDC, 0xFE, 0xFF]
    for _ in 0..<Sanitizer.shrunk(6_000) {
      // Few characters, so that chance makes some well-formed data too.
      let count = Int.random(in: 0...9, using: &dice)
      let some = characters.shuffled(using: &dice).prefix(.random(in: 1...characters.count, using: &dice))
      let bytes = (0..<count).map { _ in some.randomElement(using: &dice)! }
      let source = formats.randomElement(using: &dice)!
      let target = formats.randomElement(using: &dice)!
      let whole = data(bytes).transformed(from: source, to: target)
      #expect(cut(bytes, &dice).transformed(from: source, to: target)?.bytes == whole?.bytes)
      if whole == nil { refused += 1 } else { transformed += 1 }
    }
    #expect(refused > 0 && transformed > 0)
  }
}
