import ExampleSupport
import Glibc

/// The program: starts the search and gives the main thread to the main queue, where the search ends.
@main
struct Dupes {
  private static let program = Program(name: "dupes", help: helpText)

  static func main() {
    let options = program.options(Options.init)
    let search = Search(options)
    // The first signal ends the search. The second ends the process at once: a read may hang, or the reader of the
    // output.
    Signals.handle([SIGINT, SIGTERM], on: DispatchQueue(label: "dupes.signals")) { signal in
      if !search.cancel(signal) { _exit(128 + signal) }
    }
    let showsProgress = options.progress || (!options.quiet && isatty(STDERR_FILENO) == 1)
    let progress = showsProgress ? Progress(of: search.job) : nil
    DispatchQueue.main.async { progress?.start() }
    search.start(completionQueue: .main) { outcome in
      // The progress line is drawn on the main queue too, so the two do not mix.
      progress?.stop()
      report(outcome, options)
    }
    dispatchMain()
  }

  private static func report(_ outcome: Outcome, _ options: Options) -> Never {
    if let signal = outcome.cancellation {
      // An incomplete result would look like a complete one.
      program.complain("interrupted, no results")
      exit(128 + signal)
    }
    for skipped in outcome.skipped {
      program.complain(skipped.path + Bytes(": \(skipped.reason.text), skipped".utf8))
    }
    if !options.quiet { program.complain(outcome.summary) }
    program.finish(
      printing: outcome.text(terminator: options.endsNamesWithNull ? 0 : UInt8(ascii: "\n")),
      status: outcome.skipped.isEmpty ? 0 : 1)
  }
}

/// What the user asked for.
struct Options: Sendable {
  var roots: [Bytes] = []
  var minimumSize = 1
  var jobs: Int?
  var endsNamesWithNull = false
  var quiet = false
  /// Whether to show progress even if standard error is no terminal.
  var progress = false

  init() {}

  init(_ arguments: inout Arguments) throws(UsageError) {
    while let argument = try arguments.next() {
      switch argument {
      case .name(let root): roots.append(root)
      case .option("--min-size"): minimumSize = try arguments.size()
      case .option("-j"), .option("--jobs"): jobs = try arguments.number(in: 1...65_536)
      case .option("-0"), .option("--null"): endsNamesWithNull = true
      case .option("-q"), .option("--quiet"): quiet = true
      case .option("--progress"): progress = true
      case .option: throw arguments.unknownOption()
      }
    }
    if roots.isEmpty { throw UsageError("no directory given") }
  }
}

private let helpText = """
  usage: dupes [options] directory...

  Finds files with the same content under the directories and prints their names, one set after the other.
  Files are compared byte by byte; nothing is ever changed or removed. The hard links of a file are one file;
  its further names are listed with a tab in front. Symbolic links are not followed.

        --min-size N     ignore files smaller than N bytes; N may end in K, M or G (1; 0 includes empty files)
    -j, --jobs N         open at most N files at once
    -0, --null           end names with NUL instead of a newline
    -q, --quiet          print neither progress nor a summary (what is skipped is still named)
        --progress       show progress even if standard error is no terminal
    -h, --help           print this text

  Exit status: 0 if all could be read, 1 if something was skipped (it is named on standard error) or the output
  could not be written, 2 if the command line is wrong, 130 after Ctrl-C, 143 after SIGTERM.

  """
