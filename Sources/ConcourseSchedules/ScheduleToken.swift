/// A schedule as a short text, to repeat it: which program, what it reads as random, and the switches.
///
/// The text is base 32 with a version and a checksum. It names the program twice: by its file's name, without which
/// nothing is repeated, and by its build, whose difference is only told. A switch is named by a thread's number and by
/// how many decisions that thread has made, so that most tokens survive small changes of the program.
package struct ScheduleToken: Equatable {
  /// Of the file's name.
  package var program: UInt16
  /// Of the build: its identifier, or its content. 0 in tests, which are named by their source file instead.
  package var build: UInt16
  package var seed: UInt64
  package var isRealTime: Bool
  package var switches: [ScheduleSwitch]

  package struct Failure: Error, Equatable {
    package let reason: String

    package init(reason: String) { self.reason = reason }
  }

  package var isOfTest: Bool { build == 0 }

  private static let version: UInt8 = 1
  /// Without letters that look like digits, and without u, so that no words arise.
  private static let digits = Array("0123456789abcdefghjkmnpqrstvwxyz".utf8)
  /// More switches than a run can record.
  private static let mostSwitches: UInt64 = 1 << 20

  package var text: String {
    var bytes: [UInt8] = [Self.version, isRealTime ? 1 : 0]
    for number in [program, build] { bytes += [UInt8(number >> 8), UInt8(number & 0xFF)] }
    Self.append(seed, to: &bytes)
    Self.append(UInt64(switches.count), to: &bytes)
    for change in switches {
      for number in [UInt64(change.point), UInt64(change.thread), UInt64(change.next)] {
        Self.append(number, to: &bytes)
      }
    }
    let sum = Fingerprint(bytes).short
    return Self.encode(bytes + [UInt8(sum >> 8), UInt8(sum & 0xFF)])
  }

  /// Whether the text has only digits of tokens, and enough for the shortest one.
  package static func canBeToken(_ text: String) -> Bool {
    text.utf8.count >= 16 && text.lowercased().utf8.allSatisfy(digits.contains)
  }

  package init(program: UInt16, build: UInt16, seed: UInt64, isRealTime: Bool, switches: [ScheduleSwitch]) {
    (self.program, self.build, self.seed) = (program, build, seed)
    (self.isRealTime, self.switches) = (isRealTime, switches)
  }

  package init(_ text: String) throws(Failure) {
    let damaged = Failure(reason: "the token is damaged: copy all of it")
    guard let all = Self.decode(text), all.count >= 10 else { throw damaged }
    let bytes = Array(all.dropLast(2))
    guard Fingerprint(bytes).short == UInt16(all[all.count - 2]) << 8 | UInt16(all[all.count - 1]) else {
      throw damaged
    }
    guard bytes[0] == Self.version, bytes[1] <= 1 else {
      throw Failure(reason: "the token is of another version of Concourse")
    }
    isRealTime = bytes[1] & 1 != 0
    program = UInt16(bytes[2]) << 8 | UInt16(bytes[3])
    build = UInt16(bytes[4]) << 8 | UInt16(bytes[5])
    var rest = bytes[6...]
    guard let seed = Self.number(&rest), let count = Self.number(&rest), count < Self.mostSwitches else {
      throw damaged
    }
    self.seed = seed
    switches = []
    for _ in 0..<count {
      guard let point = Self.number(&rest).flatMap({ UInt32(exactly: $0) }),
        let thread = Self.number(&rest).flatMap({ UInt16(exactly: $0) }),
        let next = Self.number(&rest).flatMap({ UInt16(exactly: $0) })
      else { throw damaged }
      switches.append(ScheduleSwitch(thread: thread, next: next, point: point))
    }
    guard rest.isEmpty else { throw damaged }
  }

  // MARK: Numbers, seven bits in a byte

  private static func append(_ number: UInt64, to bytes: inout [UInt8]) {
    var rest = number
    while rest >= 0x80 {
      bytes.append(UInt8(rest & 0x7F) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(rest))
  }

  private static func number(_ bytes: inout ArraySlice<UInt8>) -> UInt64? {
    var number: UInt64 = 0
    for shift in stride(from: UInt64(0), to: 64, by: 7) {
      guard let byte = bytes.popFirst(), shift < 63 || byte <= 1 else { return nil }
      number |= UInt64(byte & 0x7F) << shift
      if byte & 0x80 == 0 { return number }
    }
    return nil
  }

  // MARK: Base 32

  private static func encode(_ bytes: [UInt8]) -> String {
    var text: [UInt8] = []
    var bits = 0
    var waiting = 0
    for byte in bytes {
      bits = bits << 8 | Int(byte)
      waiting += 8
      while waiting >= 5 {
        waiting -= 5
        text.append(digits[bits >> waiting & 31])
      }
      bits &= (1 << waiting) - 1
    }
    if waiting > 0 { text.append(digits[bits << (5 - waiting) & 31]) }
    return String(decoding: text, as: UTF8.self)
  }

  /// nil for another character, and for bits that no byte has. Capital letters count as small ones.
  private static func decode(_ text: String) -> [UInt8]? {
    var bytes: [UInt8] = []
    var bits = 0
    var waiting = 0
    for character in text.utf8 {
      let small = (65...90).contains(character) ? character + 32 : character
      guard let digit = digits.firstIndex(of: small) else { return nil }
      bits = bits << 5 | digit
      waiting += 5
      if waiting >= 8 {
        waiting -= 8
        bytes.append(UInt8(bits >> waiting))
        bits &= (1 << waiting) - 1
      }
    }
    return waiting < 5 && bits == 0 ? bytes : nil
  }
}

/// A number for bytes (FNV-1a). It finds accidental changes, not forgeries.
package struct Fingerprint {
  package private(set) var value: UInt64 = 0xCBF2_9CE4_8422_2325

  package init(_ bytes: some Sequence<UInt8>) { add(bytes) }

  package mutating func add(_ bytes: some Sequence<UInt8>) {
    for byte in bytes { value = (value ^ UInt64(byte)) &* 0x100_0000_01B3 }
  }

  /// All bits, folded.
  package var short: UInt16 { UInt16(truncatingIfNeeded: value ^ value >> 16 ^ value >> 32 ^ value >> 48) }
}
