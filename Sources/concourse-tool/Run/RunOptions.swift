/// The command line of `concourse run`.
struct RunOptions: Equatable {
  /// Also switches the program's children.
  var children = false
  /// Only reports whether the program can be switched.
  var check = false
  /// Runs the program even if the check fails.
  var force = false
  /// Reports the decisions.
  var verbose = false
  /// The shared library, if not the one beside the command.
  var library: String?
  /// The program, as given.
  var program: String
  /// The number of arguments before the program's name.
  var programIndex: Int

  enum Parsed: Equatable {
    case run(RunOptions)
    case help
    /// The error in the command line.
    case unusable(String)
  }

  /// - Parameter arguments: The arguments after `run`.
  static func parse(_ arguments: [String]) -> Parsed {
    var options = RunOptions(program: "", programIndex: 0)
    var index = 0
    reading: while index < arguments.count {
      let argument = arguments[index]
      switch argument {
      case "--children": options.children = true
      case "--check": options.check = true
      case "--force": options.force = true
      case "--verbose": options.verbose = true
      case "--help", "-h": return .help
      case "--library":
        index += 1
        guard index < arguments.count else { return .unusable("--library needs a path") }
        options.library = arguments[index]
      case "--":
        index += 1
        break reading
      default:
        if argument.utf8.starts(with: "--library=".utf8) {
          options.library = String(argument.dropFirst("--library=".count))
        } else if argument.utf8.first == UInt8(ascii: "-") {
          return .unusable(Suggestion.unknown("option", argument, of: Suggestion.options(in: help)))
        } else {
          break reading
        }
      }
      index += 1
    }
    if options.library == "" { return .unusable("--library needs a path") }
    guard index < arguments.count else { return .unusable("no program given") }
    options.program = arguments[index]
    options.programIndex = index
    return .run(options)
  }

  static let help = """
    usage: concourse run [options] [--] program [argument ...]

    Runs a finished program on Concourse instead of the libdispatch.so for which it was built. The program
    replaces the command: it has the same process identifier, terminal and descriptors.

      --children       also switches the program's children; use it for a script
      --library PATH   the libdispatch.so to use (default: the one in ../lib, ../lib/concourse,
                       ../lib/\(LibrarySearch.triplet)/concourse or the command's own directory,
                       relative to that directory)
      --check          reports whether the program can be switched, without running it: status 0 if so, else 1
      --force          runs the program even if it will not be switched
      --verbose        reports each decision, and the library's version, on standard error
      --help           prints this text

    A program cannot be switched if it is statically linked, setuid or setgid, has file capabilities, is a
    script, is built for another processor or C library, does not use libdispatch.so, or contains its own.

    Exit status: the program's; 125 if the command fails or the program cannot be switched, 126 if the program
    was found but cannot be run, 127 if it was not found.
    """
}
