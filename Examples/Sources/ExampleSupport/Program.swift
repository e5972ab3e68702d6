import Glibc

// The examples import this module, and with it the Dispatch that they run on: the names and their behaviour are the
// same in both modules.
#if INCUMBENT
  @_exported import Dispatch
#else
  @_exported import Concourse
#endif

/// How a command-line program starts and ends.
package struct Program: Sendable {
  package let name: String
  package let help: String

  package init(name: String, help: String) {
    self.name = name
    self.help = help
  }

  /// The options, as `parse` reads them from the command line. `--help` prints the help text and exits with status 0;
  /// a mistake is named on standard error, and the exit status is 2.
  package func options<Options>(_ parse: (inout Arguments) throws(UsageError) -> Options) -> Options {
    let words = Program.words
    if words.prefix(while: { $0.text != "--" }).contains(where: { ["-h", "--help"].contains($0.text) }) {
      finish(printing: Bytes(help.utf8), status: 0)
    }
    var arguments = Arguments(words)
    do {
      return try parse(&arguments)
    } catch {
      complain("\(error.message)\nTry '\(name) --help'.")
      exit(2)
    }
  }

  /// Writes a line to standard error, after the program's name.
  package func complain(_ message: String) { complain(Bytes(message.utf8)) }

  package func complain(_ message: Bytes) {
    // A failure cannot be reported anywhere.
    _ = writeAll(Bytes("\(name): ".utf8) + message + Bytes("\n".utf8), to: STDERR_FILENO)
  }

  /// Writes the output and exits: with `status`, or with 1 if the output cannot be written.
  package func finish(printing output: Bytes, status: Int32) -> Never {
    let failure = writeAll(output, to: STDOUT_FILENO)
    if failure == 0 { exit(status) }
    complain("standard output: \(describe(errno: failure))")
    exit(1)
  }

  /// The command line as the kernel passed it, without the program's name. `CommandLine.arguments` would repair what
  /// is not UTF-8.
  private static var words: [Bytes] {
    (1..<max(1, Int(CommandLine.argc))).map { place in
      // SAFETY: argv has `argc` NUL-terminated strings, which live as long as the process.
      let word = CommandLine.unsafeArgv[place]!
      return Bytes(UnsafeRawBufferPointer(start: word, count: strlen(word)))
    }
  }
}
