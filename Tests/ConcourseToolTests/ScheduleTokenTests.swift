import ConcourseSchedules
import Testing

@testable import ConcourseTool

@Suite("ScheduleToken")
struct ScheduleTokenTests {
  private static let token = ScheduleToken(
    program: 0xBEEF, build: 0x0102, seed: 1_000_016, isRealTime: true,
    switches: [
      ScheduleSwitch(thread: 0, next: 3, point: 17),
      ScheduleSwitch(thread: 3, next: ScheduleSwitch.time, point: 70_000),
    ])

  @Test("a token is read as it was written, in capital letters too")
  func roundTrip() throws {
    let text = Self.token.text
    #expect(try ScheduleToken(text) == Self.token)
    #expect(try ScheduleToken(text.uppercased()) == Self.token)
    #expect(text.utf8.count <= 45, "\(text)")
    var generator = SystemRandomNumberGenerator()
    for count in 0..<60 {
      let random = ScheduleToken(
        program: generator.next(), build: generator.next(), seed: generator.next(),
        isRealTime: count.isMultiple(of: 2),
        switches: (0..<count).map { _ in
          ScheduleSwitch(thread: generator.next(), next: generator.next(), point: generator.next())
        })
      #expect(try ScheduleToken(random.text) == random)
    }
  }

  @Test("each change of one character is noticed, and so is a missing part")
  func damage() {
    let text = Array(Self.token.text.utf8)
    for place in text.indices {
      for character in "0z!u".utf8 where character != text[place] {
        var changed = text
        changed[place] = character
        #expect(throws: ScheduleToken.Failure.self) {
          try ScheduleToken(String(decoding: changed, as: UTF8.self))
        }
      }
      #expect(throws: ScheduleToken.Failure.self) {
        try ScheduleToken(String(decoding: text[..<place], as: UTF8.self))
      }
    }
  }

  /// The text of these bytes with their sum.
  private static func text(_ bytes: [UInt8]) -> String {
    let sum = Fingerprint(bytes).short
    let all = bytes + [UInt8(sum >> 8), UInt8(sum & 0xFF)]
    let digits = Array("0123456789abcdefghjkmnpqrstvwxyz")
    var text = ""
    for start in stride(from: 0, to: all.count * 8, by: 5) {
      var bits = 0
      for bit in start..<start + 5 {
        let byte = bit / 8 < all.count ? Int(all[bit / 8]) : 0
        bits = bits << 1 | (byte >> (7 - bit % 8)) & 1
      }
      text.append(digits[bits])
    }
    return text
  }

  @Test("a token of another version says so, also if only a flag is new")
  func version() throws {
    #expect(try ScheduleToken(Self.text([1, 0, 0, 0, 0, 0, 1, 0])).seed == 1)
    for start: [UInt8] in [[2, 0], [1, 2]] {
      #expect(throws: ScheduleToken.Failure(reason: "the token is of another version of Concourse")) {
        try ScheduleToken(Self.text(start + [0, 0, 0, 0, 1, 0]))
      }
    }
  }

  @Test("a number that has no room is damage")
  func overflow() throws {
    let ones = [UInt8](repeating: 0xFF, count: 9)
    #expect(try ScheduleToken(Self.text([1, 0, 0, 0, 0, 0] + ones + [1, 0])).seed == .max)
    for last: UInt8 in [2, 0x7F, 0x81] {
      #expect(throws: ScheduleToken.Failure.self) {
        try ScheduleToken(Self.text([1, 0, 0, 0, 0, 0] + ones + [last, 0]))
      }
    }
  }

  @Test("a fingerprint depends on each byte and on the order")
  func fingerprint() {
    let texts = ["", "a", "b", "ab", "ba", "abc"]
    #expect(Set(texts.map { Fingerprint($0.utf8).short }).count == texts.count)
    var parts = Fingerprint("a".utf8)
    parts.add("b".utf8)
    #expect(parts.value == Fingerprint("ab".utf8).value)
  }
}
