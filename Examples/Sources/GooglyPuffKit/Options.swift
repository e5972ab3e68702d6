/// The command line, parsed.
package struct Options: Sendable, Equatable {
  package var host = "127.0.0.1"
  /// 0 lets the kernel choose a port. Nil means 8042, or a free port if 8042 is taken.
  package var port: UInt16?
  /// The URLs that "Le Internet" offers. If empty, the sample photos.
  package var internet: [String] = []

  package enum Command: Sendable, Equatable {
    case serve(Options)
    case help
  }

  /// Why the command line is invalid.
  package struct UsageError: Error, Equatable { package let message: String }

  /// - Parameter arguments: the arguments without the program's name.
  package static func parse(_ arguments: [String]) throws(UsageError) -> Command {
    var options = Options()
    var rest = arguments[...]
    while let name = rest.popFirst() {
      switch name {
      case "-h", "--help": return .help
      case "--host", "--port", "-p", "--internet":
        guard let value = rest.popFirst(), !value.isEmpty else {
          throw UsageError(message: "\(name) needs a value")
        }
        if name == "--host" {
          options.host = value
        } else if name == "--internet" {
          options.internet.append(value)
        } else {
          guard let port = UInt16(value) else { throw UsageError(message: "not a port: \(value)") }
          options.port = port
        }
      default: throw UsageError(message: "no such option: \(name)")
      }
    }
    return .serve(options)
  }

  package static let help = """
    usage: googlypuff [options]

    A photo gallery in the browser. Open a photo, and every face has googly eyes.

        --internet URL   a photo that "Le Internet" offers; may be repeated (default: three sample photos)
    -p, --port N         the port; 0 lets the kernel choose one (default: 8042, or a free one if 8042 is taken)
        --host ADDRESS   the address to listen on (default: 127.0.0.1, which only this machine can reach)
    -h, --help           print this text

    Photos are kept in a temporary directory, which is removed when Ctrl-C or SIGTERM ends the program.

    """
}
