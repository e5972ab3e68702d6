import Glibc

/// `concourse report`: what a process waits for. The process need not cooperate.
enum ReportCommand {
  /// - Parameter arguments: The arguments after `report`.
  /// - Returns: The exit status.
  static func run(_ arguments: [String]) -> Int32 {
    switch ReportOptions.parse(arguments) {
    case .help:
      Terminal.printLine(ReportOptions.help)
      return 0
    case .unusable(let reason):
      Terminal.printError("\(reason); see 'concourse report --help'")
      return RunCommand.Status.failure
    case .report(let options):
      do {
        let process: TargetProcess
        switch options.target {
        case .process(let id): process = try TargetProcess.live(id)
        case .core(let path): process = try CoreFile.open(path)
        case .recording(let path): return show(path, options)
        }
        let report = try Report.make(of: process)
        Terminal.printLine(
          options.isJSON
            ? ReportJSON.text(report)
            : ReportText.text(
              report, showsAll: options.showsAll,
              isColoured: isatty(STDOUT_FILENO) != 0 && getenv("NO_COLOR") == nil))
        return 0
      } catch {
        Terminal.printError(error.reason)
        return RunCommand.Status.failure
      }
    }
  }

  /// Prints what a flight recorder has left.
  private static func show(_ path: String, _ options: ReportOptions) -> Int32 {
    do throws(RecordingFailure) {
      var recording = try TraceCommand.reader(of: path).recording()
      let names = FunctionNames(recording)
      names.nameQueues(&recording)
      names.nameThunks(&recording)
      Terminal.printLine(
        RecordingText.text(recording, showsAll: options.showsAll) { names.name(of: $0) })
      return 0
    } catch {
      Terminal.printError(error.reason)
      return RunCommand.Status.failure
    }
  }
}

/// The command line of `concourse report`.
struct ReportOptions: Equatable {
  enum Target: Equatable {
    case process(Int32)
    case core(String)
    case recording(String)
  }

  var target: Target
  var isJSON = false
  var showsAll = false

  enum Parsed: Equatable {
    case report(ReportOptions)
    case help
    /// The error in the command line.
    case unusable(String)
  }

  static func parse(_ arguments: [String]) -> Parsed {
    var targets: [Target] = []
    var options = ReportOptions(target: .process(0))
    var index = 0
    while index < arguments.count {
      let argument = arguments[index]
      switch argument {
      case "--json": options.isJSON = true
      case "--all": options.showsAll = true
      case "--help", "-h": return .help
      case "--core", "--recording":
        index += 1
        guard index < arguments.count else { return .unusable("\(argument) needs a path") }
        targets.append(argument == "--core" ? .core(arguments[index]) : .recording(arguments[index]))
      default:
        if argument.hasPrefix("--recording=") {
          targets.append(.recording(String(argument.dropFirst("--recording=".count))))
        } else if argument.hasPrefix("--core=") {
          targets.append(.core(String(argument.dropFirst("--core=".count))))
        } else if argument.hasPrefix("-") {
          return .unusable(Suggestion.unknown("option", argument, of: Suggestion.options(in: help)))
        } else if let id = Int32(argument), id > 0 {
          targets.append(.process(id))
        } else {
          return .unusable("'\(argument)' is not the id of a process")
        }
      }
      index += 1
    }
    guard let target = targets.first else { return .unusable("no process given") }
    guard targets.count == 1 else { return .unusable("more than one process given") }
    options.target = target
    if case .recording = target, options.isJSON { return .unusable("--recording has no --json") }
    return .report(options)
  }

  static let help = """
    usage: concourse report [options] PID
           concourse report [options] --core FILE
           concourse report [--all] --recording FILE

    Prints what a process that runs on Concourse waits for, also if it hangs or is stopped: the cause, if there
    is one, then its pool, queues, threads, who waits for whom, sources and timers. The process does not notice:
    the command reads its memory, and stops only threads that are running, for some microseconds each.

      --core FILE       reads a core dump instead
      --recording FILE  reads what a flight recorder (CONCOURSE_RECORDER) has left: what each thread was in at
                        the end, items that had not started, and the last events
      --json            prints JSON (not of a recording)
      --all             also shows idle queues, whole stacks, and all rows or events
      --help            prints this text

    Reading another process needs the permissions of ptrace (see ptrace(2)). Files and lines are shown if the
    program has debug information and llvm-symbolizer is on PATH or beside swift.

    Exit status: 0 if the report was printed, else 125.
    """
}
