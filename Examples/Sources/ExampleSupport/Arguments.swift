/// A command line that the program does not understand, and why.
package struct UsageError: Error, Equatable {
  package let message: String

  package init(_ message: String) { self.message = message }
}

/// Reads a command line from left to right: `next()` returns an option or a name, and after an option that needs a
/// value, `value()` or `number(in:)` returns that. `--name=value` is the same as `--name value`, and after `--` all
/// words are names.
///
/// The words are bytes, because the name of a file need not be UTF-8.
package struct Arguments {
  package enum Argument: Equatable {
    case option(String)
    case name(Bytes)
  }

  private var rest: ArraySlice<Bytes>
  /// The last option, for messages.
  private var option = ""
  /// The value after its `=`, until it is used.
  private var joinedValue: Bytes?
  private var onlyNames = false

  /// - Parameter words: the command line without the program's name.
  package init(_ words: [Bytes]) { rest = words[...] }

  /// The next option or name; nil at the end.
  package mutating func next() throws(UsageError) -> Argument? {
    if joinedValue != nil { throw UsageError("\(option) takes no value") }
    guard let word = rest.popFirst() else { return nil }
    if onlyNames || word.first != UInt8(ascii: "-") || word.count == 1 {
      if word.isEmpty { throw UsageError("a name is empty") }
      return .name(word)
    }
    if word == Bytes("--".utf8) {
      onlyNames = true
      return try next()
    }
    let name = word.prefix { $0 != UInt8(ascii: "=") }
    if name.count < word.count { joinedValue = Bytes(word.dropFirst(name.count + 1)) }
    option = Bytes(name).text
    return .option(option)
  }

  /// The value of the last option.
  package mutating func value() throws(UsageError) -> Bytes {
    guard let value = joinedValue ?? rest.popFirst(), !value.isEmpty else {
      throw UsageError("\(option) needs a value")
    }
    joinedValue = nil
    return value
  }

  /// The value of the last option as a number: decimal digits without a sign.
  package mutating func number(in range: ClosedRange<Int>) throws(UsageError) -> Int {
    let text = try value()
    guard let number = Arguments.number(text[...]), range.contains(number) else {
      throw UsageError(
        "\(option): not a number from \(range.lowerBound) to \(range.upperBound): \(text.text)")
    }
    return number
  }

  /// The value of the last option as a number of bytes, which may end in K, M or G.
  package mutating func size() throws(UsageError) -> Int {
    let text = try value()
    let shift = [UInt8(ascii: "K"): 10, UInt8(ascii: "M"): 20, UInt8(ascii: "G"): 30][text[text.count - 1]]
    if let number = Arguments.number(shift == nil ? text[...] : text.dropLast()) {
      let (size, overflow) = number.multipliedReportingOverflow(by: 1 << (shift ?? 0))
      if !overflow { return size }
    }
    throw UsageError("\(option): not a size (a number, perhaps with K, M or G): \(text.text)")
  }

  /// What to throw for an option that the program does not have.
  package func unknownOption() -> UsageError { UsageError("no such option: \(option)") }

  private static func number(_ digits: ArraySlice<UInt8>) -> Int? {
    guard digits.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }) else { return nil }
    return Int(String(decoding: digits, as: UTF8.self))
  }
}
