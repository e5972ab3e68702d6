import Glibc

/// Names of C++ functions for people: without parameters, results and long template arguments.
enum CxxNames {
  private typealias Demangle =
    @convention(c) (
      UnsafePointer<CChar>?, UnsafeMutablePointer<CChar>?, UnsafeMutablePointer<Int>?,
      UnsafeMutablePointer<Int32>?
    ) -> UnsafeMutablePointer<CChar>?

  /// Of the C++ library, which Swift's own needs.
  private static let demangle: Demangle? = dlsym(nil, "__cxa_demangle").map {
    // SAFETY: the C++ ABI has that function under this name.
    unsafeBitCast($0, to: Demangle.self)
  }

  /// The symbol itself if it is not a C++ name, or cannot be read.
  static func readable(_ symbol: String) -> String {
    guard symbol.hasPrefix("_Z"), demangle != nil else { return MangledName.shown(symbol) }
    let text = MangledName.text(symbol) { CxxNames.demangle?($0, nil, nil, nil) }
    return text.map(shorten) ?? MangledName.shown(symbol)
  }

  /// `void work<int>(std::vector<int>&) const` becomes `work<int>`, and `main::$_0::operator()(int) const` becomes
  /// `main::$_0::operator()`.
  static func shorten(_ full: String) -> String {
    var text = Array(full.utf8)
    // `[clone .cold]` and qualifiers stand behind the parameters.
    guard let close = text.lastIndex(of: UInt8(ascii: ")")) else {
      return withShortArguments(withoutResult(text))
    }
    var depth = 0
    for index in stride(from: close, through: 0, by: -1) {
      if text[index] == UInt8(ascii: ")") { depth += 1 }
      if text[index] == UInt8(ascii: "(") { depth -= 1 }
      guard depth == 0 else { continue }
      // Inside of other brackets they are of a part of the name.
      if index > 0 && depths(text[..<index]) == 0 { text.removeSubrange(index...) }
      break
    }
    return withShortArguments(withoutResult(text))
  }

  /// Whether a bracket is of the name of an operator.
  private static func isOfOperator(_ before: ArraySlice<UInt8>) -> Bool {
    ["operator", "operator-", "operator<", "operator>", "operator<="].contains {
      before.suffix($0.utf8.count).elementsEqual($0.utf8)
    }
  }

  /// By how much each byte opens brackets.
  private static func opening(_ text: ArraySlice<UInt8>, _ index: Int) -> Int {
    switch text[index] {
    case UInt8(ascii: "("), UInt8(ascii: "{"), UInt8(ascii: "["): 1
    case UInt8(ascii: ")"), UInt8(ascii: "}"), UInt8(ascii: "]"): -1
    case UInt8(ascii: "<"): isOfOperator(text[..<index]) ? 0 : 1
    case UInt8(ascii: ">"): isOfOperator(text[..<index]) ? 0 : -1
    default: 0
    }
  }

  private static func depths(_ text: ArraySlice<UInt8>) -> Int {
    text.indices.reduce(0) { $0 + opening(text, $1) }
  }

  /// The words before the last one, outside of all brackets, are the result's.
  private static func withoutResult(_ text: [UInt8]) -> [UInt8] {
    var depth = 0
    var start = 0
    for index in text.indices {
      depth += opening(text[...], index)
      if depth == 0, text[index] == UInt8(ascii: " "),
        !text[..<index].suffix(8).elementsEqual("operator".utf8)
      {
        start = index + 1
      }
    }
    return Array(text[start...])
  }

  private static let longestArguments = 24

  private static func withShortArguments(_ text: [UInt8]) -> String {
    var result: [UInt8] = []
    var depth = 0
    var start = 0
    for index in text.indices {
      let change =
        text[index] == UInt8(ascii: "<") || text[index] == UInt8(ascii: ">") ? opening(text[...], index) : 0
      if change > 0 && depth == 0 { start = index }
      if depth == 0 && change == 0 { result.append(text[index]) }
      depth += change
      if change < 0 && depth == 0 {
        result += index - start > longestArguments ? Array("<…>".utf8) : Array(text[start...index])
      }
    }
    return String(decoding: depth == 0 ? result : text, as: UTF8.self)
  }
}
