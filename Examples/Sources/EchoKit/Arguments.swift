/// Reads the command line.
package struct Arguments {
  private var rest: ArraySlice<String>
  private var options = Options()

  /// - Parameter arguments: without the program's name.
  package static func parse(_ arguments: [String]) throws(UsageError) -> Command {
    var parser = Arguments(rest: arguments[...])
    return try parser.parse()
  }

  private init(rest: ArraySlice<String>) {
    self.rest = rest
  }

  private mutating func parse() throws(UsageError) -> Command {
    while let argument = rest.popFirst() {
      // `--name=value` is `--name value`.
      let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let name = parts.first.map(String.init) ?? ""
      let value = parts.count > 1 ? String(parts[1]) : nil
      switch name {
      case "--host": options.host = try operand(of: name, joined: value)
      case "-p", "--port": options.port = UInt16(try number(name, value, 0...65_535))
      case "--max-connections": options.maximumConnections = try number(name, value, 1...1_000_000)
      case "--grace": options.grace = try number(name, value, 0...86_400)
      case _ where value != nil: throw UsageError(message: "no such option with a value: \(name)")
      case "-q", "--quiet": options.quiet = true
      case "-h", "--help": return .help
      case "-V", "--version": return .version
      default: throw UsageError(message: "no such option: \(name)")
      }
    }
    return .serve(options)
  }

  private mutating func operand(of option: String, joined: String?) throws(UsageError) -> String {
    guard let value = joined ?? rest.popFirst(), !value.isEmpty else {
      throw UsageError(message: "\(option) needs a value")
    }
    return value
  }

  /// Decimal digits only: no sign, no space.
  private mutating func number(
    _ option: String, _ joined: String?, _ range: ClosedRange<Int>
  ) throws(UsageError) -> Int {
    let text = try operand(of: option, joined: joined)
    guard text.utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }), let number = Int(text),
      range.contains(number)
    else {
      throw UsageError(
        message: "\(option): not a number from \(range.lowerBound) to \(range.upperBound): \(text)")
    }
    return number
  }
}

package let versionText = "echo-server 1.0\n"

package let helpText = """
  usage: echo-server [options]

  Sends back to each TCP client what it receives from it.

        --host ADDRESS        where to listen: a name or an address, IPv4 or IPv6 (127.0.0.1)
    -p, --port N              the port; 0 lets the kernel choose one (7007)
        --max-connections N   connections at the same time; further clients wait (5000)
        --grace N             seconds that clients have to take their output after SIGTERM (5)
    -q, --quiet               do not say where it listens, nor anything but errors
    -h, --help                print this text
    -V, --version             print the version

  SIGTERM or SIGINT (Ctrl-C) stops it: it accepts nobody any more, sends back what it has received, closes
  all connections and ends. A second one cuts the clients off at once. SIGUSR1 prints a line of statistics
  on standard error.

  Exit status: 0 after an orderly stop, 1 if it could not listen or clients had to be cut off with output
  pending, 2 if the command line is wrong.

  """
