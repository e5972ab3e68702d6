import Glibc

/// The program: reads the command line, starts the search, and gives the main thread to the main queue.
package func runProgram() -> Never {
  let options: Options
  do {
    switch try Arguments.parse(commandLine()) {
    case .help: finish(printing: Bytes(helpText.utf8), status: .success)
    case .version: finish(printing: Bytes(versionText.utf8), status: .success)
    case .search(let parsed): options = parsed
    }
  } catch {
    writeToStandardError("dupes: \(error.message)\nTry 'dupes --help'.\n")
    exit(ExitStatus.usage.rawValue)
  }

  // Before anything takes long: from here on Ctrl-C is an orderly end.
  let cancellation = Cancellation()
  let interrupts = Interrupts(cancelling: cancellation)

  let search = Search(options, cancellation: cancellation)
  let showsProgress = options.progress ?? (!options.quiet && isatty(STDERR_FILENO) == 1)
  let progress = showsProgress ? Progress(of: search) : nil
  DispatchQueue.main.async { progress?.start() }
  search.start(completionQueue: .main) { outcome in
    // On the main queue again, where the progress line is drawn: the two cannot mix.
    progress?.stop()
    report(outcome, options, interruptedBy: interrupts.signal)
  }
  dispatchMain()
}

/// How `dupes` ends; documented in the help text.
enum ExitStatus: Int32 {
  case success = 0
  case incomplete = 1
  case usage = 2
}

/// Prints the outcome and ends the process.
private func report(_ outcome: Outcome, _ options: Options, interruptedBy signal: Int32?) -> Never {
  if let signal {
    // Half of the results would look like all of them, so there are none.
    writeToStandardError("dupes: interrupted, no results\n")
    exit(128 + signal)
  }
  var messages: Bytes = []
  for skipped in outcome.skipped {
    messages += Bytes("dupes: ".utf8) + skipped.path + Bytes(": \(skipped.reason.text), skipped\n".utf8)
  }
  _ = writeAll(messages, to: STDERR_FILENO)

  let sets = outcome.sets(countingHardLinks: options.hardLinks)
  if !options.quiet { writeToStandardError(summary(outcome, sets)) }
  let text =
    switch options.format {
    case .json: JSONReport(sets, outcome).output
    case .text: TextReport.bytes(sets, terminator: options.endsNamesWithNull ? 0 : UInt8(ascii: "\n"))
    }
  finish(printing: text, status: outcome.skipped.isEmpty ? .success : .incomplete)
}

private func summary(_ outcome: Outcome, _ sets: [Outcome.DuplicateSet]) -> String {
  let waste = sets.waste
  return "dupes: \(outcome.fileCount) files, \(sets.count) sets of duplicates, "
    + "\(waste.files) files (\(waste.bytes) bytes) more than needed"
    + (outcome.skipped.isEmpty ? "\n" : ", \(outcome.skipped.count) skipped\n")
}

private func finish(printing output: Bytes, status: ExitStatus) -> Never {
  let failure = writeAll(output, to: STDOUT_FILENO)
  if failure != 0 {
    writeToStandardError("dupes: standard output: \(Reason.system(errno: failure).text)\n")
    exit(ExitStatus.incomplete.rawValue)
  }
  exit(status.rawValue)
}

/// The arguments as the kernel passed them: `CommandLine.arguments` repairs what is not UTF-8.
private func commandLine() -> [Bytes] {
  (1..<max(1, Int(CommandLine.argc))).map { place in
    let argument = CommandLine.unsafeArgv[place]!
    // SAFETY: argv holds NUL-terminated strings that live as long as the process.
    return argument.withMemoryRebound(to: UInt8.self, capacity: strlen(argument)) {
      Bytes(UnsafeBufferPointer(start: $0, count: strlen(argument)))
    }
  }
}
