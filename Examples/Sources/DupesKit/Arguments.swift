/// Reads the command line. The arguments are bytes, not strings: a directory's name need not be UTF-8.
package struct Arguments {
  private var rest: ArraySlice<Bytes>
  private var options = Options()

  /// - Parameter arguments: without the program's name.
  package static func parse(_ arguments: [Bytes]) throws(UsageError) -> Command {
    var parser = Arguments(rest: arguments[...])
    return try parser.parse()
  }

  private init(rest: ArraySlice<Bytes>) {
    self.rest = rest
  }

  private mutating func parse() throws(UsageError) -> Command {
    var onlyNames = false
    while let argument = rest.popFirst() {
      if onlyNames || argument.first != UInt8(ascii: "-") || argument.count == 1 {
        if argument.isEmpty { throw UsageError(message: "a directory's name is empty") }
        options.roots.append(argument)
        continue
      }
      // `--name=value` is `--name value`.
      let name = argument.prefix { $0 != UInt8(ascii: "=") }
      let value = name.count < argument.count ? Bytes(argument.dropFirst(name.count + 1)) : nil
      let text = String(decoding: name, as: UTF8.self)
      switch text {
      case "--min-size": options.minimumSize = try size(operand(of: text, joined: value))
      case "-j", "--jobs": options.jobs = try count(operand(of: text, joined: value))
      case _ where value != nil: throw UsageError(message: "no such option with a value: \(text)")
      case "--": onlyNames = true
      case "-h", "--help": return .help
      case "-V", "--version": return .version
      case "-f", "--follow": options.follow = true
      case "-H", "--hardlinks": options.hardLinks = true
      case "-e", "--empty": options.empty = true
      case "-0", "--null": options.endsNamesWithNull = true
      case "-q", "--quiet": options.quiet = true
      case "--json": options.format = .json
      case "--progress": options.progress = true
      case "--no-progress": options.progress = false
      default: throw UsageError(message: "no such option: \(text)")
      }
    }
    if options.roots.isEmpty { throw UsageError(message: "no directory given") }
    if options.format == .json && options.endsNamesWithNull {
      throw UsageError(message: "--json and --null exclude each other")
    }
    return .search(options)
  }

  private mutating func operand(of option: String, joined: Bytes?) throws(UsageError) -> Bytes {
    guard let value = joined ?? rest.popFirst() else { throw UsageError(message: "\(option) needs a value") }
    return value
  }

  private func count(_ value: Bytes) throws(UsageError) -> Int {
    guard let number = number(value[...]), number > 0, let count = Int(exactly: number) else {
      let text = String(decoding: value, as: UTF8.self)
      throw UsageError(message: "not a number of jobs, 1 or more: \(text)")
    }
    return count
  }

  private func size(_ value: Bytes) throws(UsageError) -> Int64 {
    let shifts: [UInt8: Int64] = [UInt8(ascii: "K"): 10, UInt8(ascii: "M"): 20, UInt8(ascii: "G"): 30]
    let shift = value.last.flatMap { shifts[$0] }
    if let number = number(shift == nil ? value[...] : value.dropLast()) {
      let (size, overflow) = number.multipliedReportingOverflow(by: 1 << (shift ?? 0))
      if !overflow { return size }
    }
    let text = String(decoding: value, as: UTF8.self)
    throw UsageError(message: "not a size (a number, perhaps with K, M or G): \(text)")
  }

  /// Decimal digits only: no sign, no space, no overflow.
  private func number(_ digits: ArraySlice<UInt8>) -> Int64? {
    guard digits.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }) else { return nil }
    return Int64(String(decoding: digits, as: UTF8.self))
  }
}

package let versionText = "dupes 1.0\n"

package let helpText = """
  usage: dupes [options] directory...

  Finds files with the same content under the directories and prints their names, one set after the other.
  Files are compared byte by byte; nothing is ever changed or removed.

    -f, --follow         follow symbolic links (those given as arguments are followed anyway)
    -H, --hardlinks      count the hard links of a file as duplicates of each other; else they are one
                         file, whose further names are listed with a tab in front
    -e, --empty          consider empty files too
        --min-size N     ignore files smaller than N bytes; N may end in K, M or G (1024, 1024K, 1024M)
    -j, --jobs N         open at most N files at once
        --json           print one JSON object; a path that is not UTF-8 gets U+FFFD for each bad byte and
                         "bytes" beside it, the exact name in hexadecimal
    -0, --null           end names with NUL instead of a newline
    -q, --quiet          print neither progress nor a summary (what is skipped is still reported)
        --progress       show progress even if standard error is no terminal
        --no-progress    show none even if it is
    -h, --help           print this text
    -V, --version        print the version

  Exit status: 0 if all could be read, 1 if something had to be skipped or the results could not be written
  (it is named on standard error), 2 if the command line is wrong, 130 after Ctrl-C, 143 after SIGTERM.

  """
