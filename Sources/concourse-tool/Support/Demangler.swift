import Glibc

@_silgen_name("swift_demangle")
private func demangle(
  _ name: UnsafePointer<CChar>?, _ length: Int, _ output: UnsafeMutablePointer<CChar>?,
  _ size: UnsafeMutablePointer<Int>?, _ flags: UInt32
) -> UnsafeMutablePointer<CChar>?

/// Names of Swift functions for people: without modules, types and specializations.
enum Demangler {
  /// Reabstraction thunks and the like.
  static func isThunk(_ symbol: String) -> Bool {
    guard symbol.hasPrefix("$s") else { return false }
    if symbol.hasPrefix("$sI") || symbol.hasSuffix("TR") || symbol.hasSuffix("TRTA") { return true }
    // A part of an asynchronous one, or one that is specialized.
    return contains("TR", in: symbol) && contains("reabstraction thunk helper", in: demangled(symbol) ?? "")
  }

  static func readable(_ symbol: String) -> String {
    guard symbol.hasPrefix("$s") || symbol.hasPrefix("$S") else { return CxxNames.readable(symbol) }
    return demangled(symbol).map(shorten) ?? MangledName.shown(symbol)
  }

  private static func demangled(_ symbol: String) -> String? {
    // The system has this function in its standard library; its result is freed with `free`.
    MangledName.text(symbol) { demangle($0, strlen($0), nil, nil, 0) }
  }

  private static func contains(_ wanted: String, in text: String) -> Bool {
    wanted.withCString { wanted in text.withCString { strstr($0, wanted) != nil } }
  }

  /// `closure #1 @Sendable () -> () in main.move(from: Int, to: Int) -> ()` becomes `closure #1 in move(from:to:)`.
  static func shorten(_ full: String) -> String {
    var text = withoutDiscriminators(full)
    // `(1) suspend resume partial function for`: a part of an asynchronous function.
    if text.hasPrefix("("), let end = range(of: " partial function for ", in: text) {
      text = String(text[end.upperBound...])
    }
    for prefix in [
      "generic specialization <", "function signature specialization <", "merged ", "@objc ",
      "partial apply forwarder for ",
    ] {
      while text.hasPrefix(prefix) {
        if prefix.hasSuffix("<"), let end = range(of: "> of ", in: text) {
          text = String(text[end.upperBound...])
        } else {
          text = String(text.dropFirst(prefix.count))
        }
      }
    }
    let parts = split(withoutExtensions(text), at: " in ").map(shortenPart)
    return parts.joined(separator: " in ")
  }

  /// `(move in _0123ABCD)`, the name of a private function, becomes `move`.
  private static func withoutDiscriminators(_ text: String) -> String {
    var result = ""
    var rest = text[...]
    while let open = rest.firstIndex(of: "("), let close = rest[open...].firstIndex(of: ")") {
      let inside = rest[rest.index(after: open)..<close]
      if let place = range(of: " in _", in: String(inside)), inside.split(separator: " ").count == 3 {
        result += rest[..<open] + String(inside)[..<place.lowerBound]
        rest = rest[rest.index(after: close)...]
      } else {
        result += rest[...open]
        rest = rest[rest.index(after: open)...]
      }
    }
    return result + rest
  }

  /// `(extension in Swift):Swift.Task< where A == Swift.Never>.sleep()`, a member of an extension, becomes
  /// `Swift.Task.sleep()`.
  private static func withoutExtensions(_ text: String) -> String {
    guard let start = range(of: "(extension in ", in: text), let end = range(of: "):", in: text),
      start.upperBound <= end.lowerBound
    else { return text }
    let front = String(text[..<start.lowerBound])
    let member = String(text[end.upperBound...])
    guard let clause = range(of: "< where ", in: member) else { return front + member }
    // Up to the bracket that closes it; arrows have some, too.
    var depth = 0
    var last: Character = " "
    for index in member[clause.lowerBound...].indices {
      let character = member[index]
      if character == "<" { depth += 1 }
      if character == ">" && last != "-" { depth -= 1 }
      if depth == 0 { return front + member[..<clause.lowerBound] + member[member.index(after: index)...] }
      last = character
    }
    return front + member
  }

  private static func shortenPart(_ part: String) -> String {
    if part.hasPrefix("closure #") {
      // The number only; the type follows.
      let words = part.split(separator: " ", maxSplits: 2)
      return words.prefix(2).joined(separator: " ")
    }
    // Of an accessor, `main.Index.count.getter : Swift.Int`, the type is left out.
    var text = range(of: " : ", in: part).map { String(part[..<$0.lowerBound]) } ?? part
    for prefix in ["static ", "merged ", "implicit "] where text.hasPrefix(prefix) {
      text = String(text.dropFirst(prefix.count))
    }
    guard let open = firstParenthesis(in: text) else {
      return text.hasSuffix("_main") ? text : lastName(text)
    }
    // Attributes stand between the name and the arguments: `main.move@Sendable (from: Int) -> ()`.
    let name = lastName(String(text[..<open].prefix { $0 != "@" }))
    return name + labels(of: text[open...])
  }

  /// The name after the module; a member keeps its type.
  private static func lastName(_ text: String) -> String {
    let words = text.split(separator: ".")
    return words.count > 1 ? words.dropFirst().joined(separator: ".") : text
  }

  /// `(from: Int, (Int, Int))` becomes `(from:_:)`.
  private static func labels(of arguments: Substring) -> String {
    var depth = 0
    var labels = ""
    var word = ""
    var isLabelled = false
    var hasArgument = false
    func closeArgument() {
      if hasArgument { labels += isLabelled ? word + ":" : "_:" }
    }
    scanning: for character in arguments {
      switch character {
      case "(", "<", "[":
        depth += 1
        if depth > 1 { hasArgument = true }
      case ")", ">", "]":
        depth -= 1
        if depth == 0 { break scanning }
      case "," where depth == 1:
        closeArgument()
        (word, isLabelled, hasArgument) = ("", false, false)
      case ":" where depth == 1 && !isLabelled:
        isLabelled = true
      case " " where !hasArgument:
        break
      default:
        hasArgument = true
        if !isLabelled && depth == 1 { word.append(character) }
      }
    }
    closeArgument()
    return "(" + labels + ")"
  }

  private static func firstParenthesis(in text: String) -> String.Index? { text.firstIndex(of: "(") }

  private static func range(of wanted: String, in text: String) -> Range<String.Index>? {
    var start = text.startIndex
    while start < text.endIndex {
      if text[start...].hasPrefix(wanted) { return start..<text.index(start, offsetBy: wanted.count) }
      start = text.index(after: start)
    }
    return nil
  }

  /// Outside parentheses only: types of arguments may contain the word.
  private static func split(_ text: String, at separator: String) -> [String] {
    var parts: [String] = []
    var part = ""
    var depth = 0
    var index = text.startIndex
    while index < text.endIndex {
      if depth == 0 && text[index...].hasPrefix(separator) {
        parts.append(part)
        part = ""
        index = text.index(index, offsetBy: separator.count)
        continue
      }
      let character = text[index]
      if "(<[".contains(character) { depth += 1 }
      if ")]".contains(character) { depth -= 1 }
      if character == ">" && part.last != "-" { depth -= 1 }
      part.append(character)
      index = text.index(after: index)
    }
    return parts + [part]
  }
}
