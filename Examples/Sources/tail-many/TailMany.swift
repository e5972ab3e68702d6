import ExampleSupport
import Glibc

/// The program: starts to follow the files, and gives the main thread to the main queue.
@main
struct TailMany {
  private static let program = Program(name: "tail-many", help: helpText)

  static func main() {
    let options = program.options(Options.init)
    let ended: @Sendable (Int32, Int32) -> Void = { status, failure in
      // A reader such as `head` closes the pipe when it has enough; that is no error to report.
      if failure != 0 && failure != EPIPE { program.complain("standard output: \(describe(errno: failure))") }
      exit(status)
    }
    let follower = Follower(options, report: { program.complain($0) }, ended: ended)
    // If the reader of our output has gone, a write should fail and not end the process.
    signal(SIGPIPE, SIG_IGN)
    Signals.handle([SIGINT, SIGTERM], on: follower.queue) { signal in
      // The second signal does not wait for the reader of the output.
      if !follower.stop(status: 128 + signal) { _exit(128 + signal) }
    }
    follower.start(output: STDOUT_FILENO)
    dispatchMain()
  }
}

/// What the user asked for.
struct Options: Sendable {
  var paths: [Bytes] = []
  /// How many of the last lines to begin with.
  var lines = 10

  init(_ arguments: inout Arguments) throws(UsageError) {
    while let argument = try arguments.next() {
      switch argument {
      case .name(let path): paths.append(path)
      case .option("-n"), .option("--lines"): lines = try arguments.number(in: 0...1_000_000)
      case .option: throw arguments.unknownOption()
      }
    }
    if paths.isEmpty { throw UsageError("no file given") }
  }
}

private let helpText = """
  usage: tail-many [options] file...

  Prints the last lines of the files, and then what is appended to them, until it is stopped. Lines are whole, and
  those of several files have the file's name above them. A name is followed, not a file: when a log is rotated, the
  old file is read to its end and then the new one from its start.

    -n, --lines N    begin with the last N lines of each file, of its last 64 KiB (10)
    -h, --help       print this text

  Exit status: 1 if the output could not be written, 2 if the command line is wrong, 130 after Ctrl-C, 143 after
  SIGTERM (a second one does not wait for the output).

  """
