/// The command line of `concourse trace`.
struct TraceOptions: Equatable {
  enum Target: Equatable {
    case process(Int32)
    /// The index of the program among the arguments.
    case program(Int)
    case recording(String)
  }

  var target: Target
  /// nil: until the program ends, or a second for a process.
  var seconds: Double?
  /// The file to write; nil for concourse-PID.json.
  var output: String?
  /// The library to run a program on, if not the one beside the command.
  var library: String?

  enum Parsed: Equatable {
    case trace(TraceOptions)
    case help
    /// The error in the command line.
    case unusable(String)
  }

  /// - Parameter arguments: The arguments after `trace`.
  static func parse(_ arguments: [String]) -> Parsed {
    var options = TraceOptions(target: .process(0))
    var recording: String?
    var process: Int32?
    var index = 0
    reading: while index < arguments.count {
      let argument = arguments[index]
      func value(_ name: String) -> String? { arguments.value(of: name, at: &index) }
      if argument == "--help" || argument == "-h" { return .help }
      if argument == "--" {
        index += 1
        break reading
      }
      if let text = value("--seconds") {
        guard let seconds = Double(text), seconds > 0, seconds <= 86400 else {
          return .unusable("'\(text)' is not a number of seconds")
        }
        options.seconds = seconds
      } else if let path = value("-o") ?? value("--output") {
        options.output = path
      } else if let path = value("--library") {
        options.library = path
      } else if let path = value("--recording") {
        recording = path
      } else if process == nil, let number = Int32(argument), number > 0 {
        process = number
      } else if argument.utf8.first == UInt8(ascii: "-") {
        return .unusable(
          ["--seconds", "-o", "--output", "--library", "--recording"].contains(argument)
            ? "\(argument) needs a value"
            : Suggestion.unknown("option", argument, of: Suggestion.options(in: help)))
      } else {
        break reading
      }
      index += 1
    }
    if let output = options.output, TraceFormat(path: output) == nil {
      return .unusable("the name of the output must end in .json, .pftrace or .html")
    }
    let programs = index < arguments.count ? 1 : 0
    guard programs + (process == nil ? 0 : 1) + (recording == nil ? 0 : 1) <= 1 else {
      return .unusable("only one process, program or recording can be given")
    }
    if let recording {
      options.target = .recording(recording)
    } else if let process {
      options.target = .process(process)
    } else if programs == 1 {
      options.target = .program(index)
    } else {
      return .unusable("no process and no program given")
    }
    return .trace(options)
  }

  static let help = """
    usage: concourse trace [options] PID
           concourse trace [options] [--] program [argument ...]
           concourse trace [options] --recording FILE

    Records what a process on Concourse does, and writes a file that shows it: a track for each thread and for
    each queue, items, arrows from submission to start, waits, and counters.

      -o FILE           the file to write (default: concourse-PID.json, or with a number if that name is taken). Its
                        ending chooses the format: .html is a page for any browser, .json is the Trace Event
                        Format, .pftrace is for ui.perfetto.dev. Only its owner can read a new file
      --seconds N       how long to record (default: a second; a program until it ends). The program goes on
                        afterwards, and the command ends with it. With PID an interrupt or SIGTERM ends it earlier
      --library PATH    the libdispatch.so to run the program on, as for 'concourse run'
      --recording FILE  reads what a flight recorder (CONCOURSE_RECORDER) has left instead
      --help            prints this text

    A program that contains Concourse is run as it is, another one as 'concourse run' does. Recording another process
    needs the permissions of ptrace (see ptrace(2)).

    Exit status: 0 if the file was written, the program's if one was run, else 125.
    """
}

/// How a trace is written.
enum TraceFormat: String {
  case json, pftrace, html

  /// As the ending of the path says; nil if it is another.
  init?(path: String) {
    guard let dot = path.utf8.lastIndex(of: UInt8(ascii: ".")) else { return nil }
    self.init(rawValue: String(path[path.utf8.index(after: dot)...]))
  }

  func write(_ recording: Recording, functions: @escaping (UInt64) -> String) -> [UInt8] {
    switch self {
    case .json: TraceJSON.write(recording, functions: functions)
    case .pftrace: TracePerfetto.write(recording, functions: functions)
    case .html: TracePage.write(recording, functions: functions)
    }
  }
}
