import CTracing
import Glibc
import Synchronization

/// Reads the names of functions, within limits.
///
/// A part of a mangled name may refer to earlier parts, and these to still earlier ones. So what a name stands for may be
/// exponentially long: 230 bytes of a file that is not trusted, read as C++, are 140 megabytes of text. Names of programs
/// have few such references, to short parts.
enum MangledName {
  static let longest = 4096
  /// With three references in each part to the one before it, a name grows by 3 for each three references: to 6,561 times.
  static let mostReferences = 24
  /// Of what the demangler says; shortening it takes time, too.
  static let longestText = 1 << 14

  /// After so many names that took too long, no more are tried.
  static let mostFailures = 32

  typealias Reader = @convention(c) (UnsafePointer<CChar>) -> UnsafeMutablePointer<CChar>?

  // ORDERING: relaxed; a number for itself.
  private static let failures = Atomic<Int>(0)

  /// What a demangler makes of the symbol; nil if it fails, or says too much. Names that may grow are read in another
  /// process, whose time is limited.
  static func text(_ symbol: String, _ reader: Reader) -> String? {
    let bytes = Array(symbol.utf8.prefix(longest + 1))
    guard bytes.count <= longest else { return nil }
    let isCxx = symbol.hasPrefix("_Z")
    let references = isCxx ? referencesOfCxx(bytes) : referencesOfSwift(bytes)
    if references <= mostReferences, !(isCxx && expandsPacks(bytes)) {
      guard let text = symbol.withCString(reader) else { return nil }
      defer { free(text) }
      return strlen(text) <= longestText ? String(cString: text) : nil
    }
    // ORDERING: relaxed; see above.
    guard failures.load(ordering: .relaxed) < mostFailures else { return nil }
    var text = [CChar](repeating: 0, count: longestText)
    let count = symbol.withCString { tracing_read_name(reader, $0, &text, text.count) }
    guard count >= 0 else {
      // ORDERING: relaxed; see above.
      failures.add(1, ordering: .relaxed)
      return nil
    }
    return String(decoding: text[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// What is shown of a symbol that is not read.
  static func shown(_ symbol: String) -> String {
    symbol.utf8.count <= 512 ? symbol : symbol.prefix(500) + "…"
  }

  /// `S_`, `S1A_`, `T_` and `T0_`. In the identifiers of a name the same characters may stand; they are counted, too.
  static func referencesOfCxx(_ bytes: [UInt8]) -> Int {
    var (references, candidates) = (0, 0)
    for byte in bytes {
      if byte == UInt8(ascii: "S") || byte == UInt8(ascii: "T") {
        candidates += 1
      } else if !isDigit(byte) && !isCapital(byte) {
        if byte == UInt8(ascii: "_") { references += candidates }
        candidates = 0
      }
    }
    return references
  }

  /// Whether a name of C++ may repeat the elements of a pack: `Dp` or `sp`, beside the pack itself, `J`.
  static func expandsPacks(_ bytes: [UInt8]) -> Bool {
    bytes.contains(UInt8(ascii: "J"))
      && zip(bytes, bytes.dropFirst()).contains { first, second in
        second == UInt8(ascii: "p") && (first == UInt8(ascii: "D") || first == UInt8(ascii: "s"))
      }
  }

  /// `AB` is one, `AbcD` are three, `A12B` are twelve, and `A12_` is one with a large number.
  /// In identifiers the same characters may stand, above all in those of private functions; they are counted, too.
  static func referencesOfSwift(_ bytes: [UInt8]) -> Int {
    var (references, index) = (0, 0)
    while index < bytes.count {
      defer { index += 1 }
      guard bytes[index] == UInt8(ascii: "A") else { continue }
      var times = 0
      while index + 1 < bytes.count {
        let next = bytes[index + 1]
        if isDigit(next) {
          times = min(times * 10 + Int(next - UInt8(ascii: "0")), longest)
          index += 1
        } else if next == UInt8(ascii: "_") {
          references += 1
          break
        } else if isCapital(next) || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(next) {
          references += max(times, 1)
          times = 0
          index += 1
          if isCapital(next) { break }
        } else {
          break
        }
      }
    }
    return references
  }

  private static func isDigit(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
  }

  private static func isCapital(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
  }
}
