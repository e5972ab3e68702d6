/// What the user asked for.
package struct Options: Sendable, Equatable {
  package var host = "127.0.0.1"
  /// 0 lets the kernel choose. Without one, 8042, or another if that is taken.
  package var port: UInt16?
  /// What "Le Internet" offers; nothing means the photos that come along.
  package var internet: [String] = []

  package enum Command: Sendable, Equatable {
    case serve(Options)
    case help
  }

  /// A command line that makes no sense, and why.
  package struct UsageError: Error, Equatable { package let message: String }

  /// - Parameter arguments: without the program's name.
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

    A gallery of photos in the browser. Every face in a photo that is opened gets googly eyes.

        --internet URL   a photo that "Le Internet" offers; as often as you like (three that come along)
    -p, --port N         the port; 0 lets the kernel choose one (8042, or another if that is taken)
        --host ADDRESS   where to listen (127.0.0.1, which only this machine can reach)
    -h, --help           print this text

    The photos are kept in a temporary directory, which Ctrl-C or SIGTERM removes.

    """
}
