/// Reads the command line. The arguments are bytes, not strings: a name need not be UTF-8.
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
        if argument.isEmpty { throw UsageError(message: "a name is empty") }
        options.paths.append(argument)
        continue
      }
      // `--name=value` is `--name value`.
      let name = argument.prefix { $0 != UInt8(ascii: "=") }
      let value = name.count < argument.count ? Bytes(argument.dropFirst(name.count + 1)) : nil
      let text = Bytes(name).text
      switch text {
      case "-n", "--lines": options.lines = try lines(operand(of: text, joined: value))
      case "--match": options.patterns.append(try operand(of: text, joined: value))
      case "--idle-exit": options.idleExit = try milliseconds(operand(of: text, joined: value))
      case "--recheck": options.recheck = max(1, try milliseconds(operand(of: text, joined: value)))
      case "--linger": options.linger = try milliseconds(operand(of: text, joined: value))
      case "--buffer": options.buffer = max(1, try number(operand(of: text, joined: value)))
      case _ where value != nil: throw UsageError(message: "no such option with a value: \(text)")
      case "--": onlyNames = true
      case "-h", "--help": return .help
      case "-V", "--version": return .version
      case "--header": options.style = .header
      case "-p", "--prefix": options.style = .prefix
      case "--json": options.style = .json
      case "--plain": options.style = .plain
      case "--exit-when-gone": options.exitsWhenGone = true
      case "-q", "--quiet": options.quiet = true
      default: throw UsageError(message: "no such option: \(text)")
      }
    }
    if options.paths.isEmpty { throw UsageError(message: "no file given") }
    return .follow(options)
  }

  private mutating func operand(of option: String, joined: Bytes?) throws(UsageError) -> Bytes {
    guard let value = joined ?? rest.popFirst() else { throw UsageError(message: "\(option) needs a value") }
    return value
  }

  private func lines(_ value: Bytes) throws(UsageError) -> Int? {
    value.text == "all" ? nil : try number(value)
  }

  private func number(_ value: Bytes) throws(UsageError) -> Int {
    guard value.allSatisfy(Self.isDigit), let number = Int(value.text) else {
      throw UsageError(message: "not a number: \(value.text)")
    }
    return number
  }

  /// Seconds, perhaps with a fraction.
  private func milliseconds(_ value: Bytes) throws(UsageError) -> Int {
    guard value.allSatisfy({ Self.isDigit($0) || $0 == UInt8(ascii: ".") }),
      let seconds = Double(value.text), seconds <= 1e9
    else { throw UsageError(message: "not a number of seconds: \(value.text)") }
    return Int((seconds * 1000).rounded())
  }

  private static func isDigit(_ byte: UInt8) -> Bool { UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte }
}

package let versionText = "tail-many 1.0\n"

package let helpText = """
  usage: tail-many [options] file-or-directory...

  Prints the last lines of files and then what is appended to them, until it is stopped. A directory stands
  for all files in it, also for those made later. A name is followed, not a file: when a log is rotated, the
  old file is read to its end and then the new one from its start. Lines of different files never mix.

    -n, --lines N        begin with the last N lines of each file, or "all" (10)
        --match GLOB     of the files in directories, only those with such names; may be repeated
        --header         a line with the name above the lines of another file (the way with many files)
    -p, --prefix         the name before each line
        --json           one object a line: {"file": ..., "line": ...}
        --plain          only the lines (the way with a single file)
        --exit-when-gone stop when none of the files exists any more
        --idle-exit S    stop when nothing has been appended for S seconds
        --linger S       follow a file that has lost its name until nothing has come for S seconds (5)
        --recheck S      look every S seconds for what nobody gives notice of: names whose directory does not
                         exist, files that could not be read (1)
        --buffer N       read no further while N bytes wait for the standard output (1048576)
    -q, --quiet          do not say what becomes of the files
    -h, --help           print this text
    -V, --version        print the version

  SIGUSR1 prints a line of numbers to standard error. Times may have a fraction.

  Exit status: 0 when it stops by itself, 1 if the output could not be written, 2 if the command line is
  wrong, 130 after Ctrl-C, 143 after SIGTERM (a second one does not wait for the output).

  """
