/// The command line of `concourse run`.
struct RunOptions: Equatable {
  /// The switch stays in force for what the program starts.
  var children = false
  /// Only tells whether the program can be switched.
  var check = false
  /// Runs the program also where a check speaks against it.
  var force = false
  /// Tells what was decided.
  var verbose = false
  /// The shared library, where it is not the one beside the command.
  var library: String?
  /// The program as it was named.
  var program: String
  /// How many of the arguments came before the program's name.
  var programIndex: Int

  enum Parsed: Equatable {
    case run(RunOptions)
    case help
    /// What is wrong with the command line, in words.
    case unusable(String)
  }

  /// - Parameter arguments: what follows the word `run`.
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
          return .unusable("there is no option '\(argument)'")
        } else {
          break reading
        }
      }
      index += 1
    }
    if options.library == "" { return .unusable("--library needs a path") }
    guard index < arguments.count else { return .unusable("no program was named") }
    options.program = arguments[index]
    options.programIndex = index
    return .run(options)
  }

  static let help = """
    usage: concourse run [options] [--] program [argument ...]

    Runs a finished program on Concourse in place of the libdispatch.so that it was built for. The program
    takes over the command's process: identifier, terminal, descriptors, signals and exit status are its own.

      --children       what the program starts is switched, too; otherwise only the program itself is. This is
                       also how a script is run: whatever it starts is switched
      --library PATH   the libdispatch.so to use (otherwise ../lib/libdispatch.so, ../lib/concourse/libdispatch.so
                       or libdispatch.so, seen from the command's own directory)
      --check          says whether the program can be switched, and does not run it: status 0 if so, else 1
      --force          runs it even if the check says that nothing will be switched
      --verbose        says on standard error what was decided
      --help           says this

    A program cannot be switched if it is statically linked, setuid, setgid or has capabilities of its own, is
    a script, is made for another processor or C library, does not use libdispatch.so, or brings its own.

    Exit status: the program's; 125 if the command fails or the program cannot be switched, 126 if the program
    was found but cannot be run, 127 if it was not found.
    """
}
