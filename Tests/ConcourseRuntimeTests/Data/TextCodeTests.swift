import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

/// Text between the three encodings.
@Suite("Data as text")
struct TextCodeTests {
  /// The bytes of a text in UTF-16, without a mark.
  static func units(_ text: String, _ format: DataFormat) -> [UInt8] {
    text.utf16.flatMap { unit in
      let (high, low) = (UInt8(unit >> 8), UInt8(truncatingIfNeeded: unit))
      return format == .utf16le ? [low, high] : [high, low]
    }
  }

  static func mark(_ format: DataFormat) -> [UInt8] { units("\u{FEFF}", format) }

  @Test(
    "Texts", arguments: ["A", "é", "€", "😀", "a\u{0}b", "Grüße, 世界 😀", "\u{D7FF}\u{E000}\u{FFFD}\u{10FFFF}"])
  func texts(text: String) {
    let utf8 = data(text)
    for format in [DataFormat.utf16le, .utf16be] {
      let bare = Self.units(text, format)
      let marked = Self.mark(format) + bare
      #expect(utf8.transformed(from: .utf8, to: format)?.bytes == marked)
      #expect(data(bare).transformed(from: format, to: .utf8)?.text == text)
      #expect(data(marked).transformed(from: format, to: .utf8)?.text == text)
      #expect(data(bare).transformed(from: format, to: format)?.bytes == marked)
      let other: DataFormat = format == .utf16le ? .utf16be : .utf16le
      #expect(
        data(marked).transformed(from: format, to: other)?.bytes == Self.mark(other) + Self.units(text, other)
      )
    }
  }

  @Test("Every scalar, and those next to the limits of each length")
  func everyScalar() throws {
    var text = String.UnicodeScalarView()
    for value in UInt32(0)...0x10FFFF { Unicode.Scalar(value).map { text.append($0) } }
    let utf8 = data(String(text))
    let wide = try #require(utf8.transformed(from: .utf8, to: .utf16le))
    #expect(wide.bytes == Self.mark(.utf16le) + Self.units(String(text), .utf16le))
    #expect(try #require(wide.transformed(from: .utf16le, to: .utf8)).bytes == utf8.bytes)
  }

  @Test("One byte order mark at the start is not part of the text; others are")
  func marks() {
    let marked = "\u{FEFF}A\u{FEFF}B"
    let bare = "A\u{FEFF}B"
    #expect(data(marked).transformed(from: .utf8, to: .utf8)?.text == bare)
    for format in [DataFormat.utf16le, .utf16be] {
      let wide = Self.mark(format) + Self.units(bare, format)
      #expect(data(marked).transformed(from: .utf8, to: format)?.bytes == wide)
      #expect(data(bare).transformed(from: .utf8, to: format)?.bytes == wide)
      #expect(data(wide).transformed(from: format, to: format)?.bytes == wide)
      #expect(data(wide).transformed(from: format, to: .utf8)?.text == bare)
      #expect(data(Self.mark(format) + wide).transformed(from: format, to: .utf8)?.text == marked)
      // The mark alone is an empty text.
      for target in DataTransformTests.textFormats {
        #expect(data(Self.mark(format)).transformed(from: format, to: target)?.object === DataObject.empty)
        #expect(data("\u{FEFF}").transformed(from: .utf8, to: target)?.object === DataObject.empty)
      }
    }
    #expect(data(Array("\u{FEFF}A".utf8), cutAt: 1).transformed(from: .utf8, to: .utf16be)?.count == 4)
  }

  @Test("UTF-16 with the mark of the other byte order is refused")
  func swappedMark() {
    for target in DataTransformTests.textFormats {
      #expect(data([0xFE, 0xFF, 0x41, 0]).transformed(from: .utf16le, to: target) == nil)
      #expect(data([0xFF, 0xFE, 0, 0x41]).transformed(from: .utf16be, to: target) == nil)
    }
    // Later in the text it is an ordinary scalar, and in UTF-8 it implies no byte order.
    #expect(data([0x41, 0, 0xFE, 0xFF]).transformed(from: .utf16le, to: .utf8)?.text == "A\u{FFFE}")
    #expect(data("\u{FFFE}").transformed(from: .utf8, to: .utf16be)?.bytes == [0xFE, 0xFF, 0xFF, 0xFE])
  }

  @Test("UTF-8 to UTF-8 gives the same object, unless it has a mark")
  func sameObject() {
    let object = data(regions: "Grü", "ße").object
    #expect(DataObject.transform(object, from: .utf8, to: .utf8) === object)
    #expect(DataObject.transform(object, from: .utfAny, to: .utf8) === object)
  }

  @Test("The mark determines the encoding of any text")
  func anyText() {
    for format in [DataFormat.utf16le, .utf16be] {
      let marked = data(Self.mark(format) + Self.units("é😀", format))
      #expect(marked.transformed(from: .utfAny, to: .utf8)?.text == "é😀")
      #expect(marked.transformed(from: .utfAny, to: format)?.bytes == marked.bytes)
      let split = data(marked.bytes, cutAt: 1)
      #expect(split.transformed(from: .utfAny, to: .utf8)?.text == "é😀")
    }
    #expect(data("\u{FEFF}é").transformed(from: .utfAny, to: .utf8)?.text == "é")
    #expect(data("é").transformed(from: .utfAny, to: .utf8)?.text == "é")
    #expect(data("A").transformed(from: .utfAny, to: .utf16be)?.bytes == [0xFE, 0xFF, 0, 0x41])
    #expect(data([0xFF]).transformed(from: .utfAny, to: .utf8) == nil)
    #expect(data([0x41, 0xFF]).transformed(from: .utfAny, to: .utf8) == nil)
  }

  @Test(
    "Malformed UTF-8",
    arguments: [
      // Cut off, begun too early, begun without an end.
      [0xC3], [0x41, 0xC3], [0xE2, 0x82], [0xF0, 0x9F, 0x98], [0x80], [0x41, 0xBF], [0xC3, 0x28],
      [0xE2, 0x28, 0xAC], [0xE2, 0x82, 0x41], [0xF0, 0x9F, 0x98, 0x41], [0xC3, 0xC3, 0xA9],
      // Longer than needed.
      [0xC0, 0x80], [0xC1, 0xBF], [0xE0, 0x80, 0x80], [0xE0, 0x9F, 0xBF], [0xF0, 0x80, 0x80, 0x80],
      [0xF0, 0x8F, 0xBF, 0xBF],
      // Surrogates, and numbers that are too large.
      [0xED, 0xA0, 0x80], [0xED, 0xAF, 0xBF], [0xED, 0xB0, 0x80], [0xED, 0xBF, 0xBF],
      [0xED, 0xA0, 0xBD, 0xED, 0xB8, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80],
      [0xF8, 0x88, 0x80, 0x80, 0xA0], [0xFE], [0xFF], [0xFF, 0xFE, 0x41, 0],
    ] as [[UInt8]])
  func malformedUTF8(bytes: [UInt8]) {
    for target in DataTransformTests.textFormats {
      #expect(data(bytes).transformed(from: .utf8, to: target) == nil)
      for place in 0..<bytes.count {
        #expect(data(bytes, cutAt: place).transformed(from: .utf8, to: target) == nil)
      }
    }
  }

  @Test(
    "Malformed UTF-16",
    arguments: [
      [0x00], [0x00, 0x41, 0x00], [0xD8, 0x3D], [0xDE, 0x00], [0xD8, 0x3D, 0x00, 0x41],
      [0xDE, 0x00, 0xD8, 0x3D], [0xD8, 0x3D, 0xDE], [0xD8, 0x3D, 0xD8, 0x3D, 0xDE, 0x00],
      [0xD8, 0x3D, 0xDE, 0x00, 0xDE, 0x00],
    ] as [[UInt8]])
  func malformedUTF16(bytes: [UInt8]) {
    var swapped = bytes
    for place in stride(from: 1, to: bytes.count, by: 2) { swapped.swapAt(place - 1, place) }
    for target in DataTransformTests.textFormats {
      #expect(data(bytes).transformed(from: .utf16be, to: target) == nil)
      #expect(data(swapped).transformed(from: .utf16le, to: target) == nil)
    }
  }

  @Test("Text is refused exactly if the standard library's decoder repairs it", arguments: 0..<4)
  func againstTheStandardLibrary(run: Int) {
    var dice = Seed.dice(run)
    // Bytes that are likely to be next to a limit.
    let bytes: [UInt8] = [
      0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC2, 0xDF, 0xE0, 0xE1, 0xED, 0xEF, 0xF0,
      0xF1, 0xF4, 0xF5, 0xFF,
    ]
    var accepted = 0
    for _ in 0..<Sanitizer.shrunk(20_000) {
      let text = (0..<Int.random(in: 1...5, using: &dice)).map { _ in bytes.randomElement(using: &dice)! }
      let expected = String(validating: text, as: UTF8.self)
      let wide = data(text).transformed(from: .utf8, to: .utf16be)
      #expect(wide?.bytes == expected.map { Self.mark(.utf16be) + Self.units($0, .utf16be) }, "\(text)")
      accepted += expected == nil ? 0 : 1
    }
    #expect(accepted > 0)
  }
}
