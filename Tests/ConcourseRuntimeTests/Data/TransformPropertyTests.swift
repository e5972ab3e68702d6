import Testing

@testable import ConcourseRuntime

/// Random data cut at random places.
@Suite("Transforms of data in regions")
struct TransformPropertyTests {
  /// The same bytes in one region each time the dice say so, down to a byte.
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
      // A mark in front is no part of a text, so nothing would come back of it.
      if scalar != 0xFEFF || !text.isEmpty { text.append(Unicode.Scalar(scalar)!) }
    }
    return String(text)
  }

  @Test("Encoded and decoded again, whatever the regions", arguments: 0..<4)
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
        // The generator may have put nothing into the text, which then has no mark to tell its encoding.
        #expect(narrow.text == text)
      }
    }
  }

  @Test("Data in regions is transformed as the whole is, well-formed or not", arguments: 0..<4)
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
