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
  /// Only what happened in the last nanoseconds of the recording is written; nil for all.
  var last: UInt64?
  /// The most bytes that the file may have; nil for any number.
  var limit: Int?
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
      } else if let text = value("--last") {
        guard let time = duration(text) else {
          return .unusable("'\(text)' is not a time, such as 2, 2s, 500ms or 800us")
        }
        options.last = time
      } else if let text = value("--limit") {
        guard let size = size(text) else {
          return .unusable("'\(text)' is not a size, such as 50M, 800K or 1G")
        }
        options.limit = size
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
          ["--seconds", "--last", "--limit", "-o", "--output", "--library", "--recording"].contains(argument)
            ? "\(argument) needs a value"
            : Suggestion.unknown("option", argument, of: Suggestion.options(in: help)))
      } else {
        break reading
      }
      index += 1
    }
    if let output = options.output, TraceFormat(path: output) == nil {
      return .unusable("the name of the output must end in .json, .json.gz, .pftrace or .html")
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

  /// Nanoseconds of a time with the unit s, ms or us; without a unit it is seconds.
  static func duration(_ text: String) -> UInt64? {
    let units: [(String, Double)] = [("ms", 1e6), ("us", 1e3), ("s", 1e9), ("", 1e9)]
    guard let (ending, unit) = units.first(where: { text.hasSuffix($0.0) }),
      let number = Double(text.dropLast(ending.utf8.count)), number > 0, number * unit <= 86400e9
    else { return nil }
    return UInt64(number * unit)
  }

  /// Bytes of a size with the unit K, M or G, which are powers of 1000.
  static func size(_ text: String) -> Int? {
    let text = text.hasSuffix("B") ? text.dropLast() : text[...]
    let units: [(String, Double)] = [("K", 1e3), ("M", 1e6), ("G", 1e9), ("", 1)]
    guard let (ending, unit) = units.first(where: { text.hasSuffix($0.0) }),
      let number = Double(text.dropLast(ending.utf8.count)), number > 0, number * unit >= 1,
      number * unit <= 1e12
    else { return nil }
    return Int(number * unit)
  }

  static let help = """
    usage: concourse trace [options] PID
           concourse trace [options] [--] program [argument ...]
           concourse trace [options] --recording FILE

    Records what a process on Concourse does, and writes a file that shows it: a track for each thread and for
    each queue, items, arrows from submission to start, waits, and counters.

      -o FILE           the file to write (default: concourse-PID.json, or with a number if that name is taken). Its
                        ending chooses the format: .html is a page for any browser, .json is the Trace Event
                        Format, .json.gz is the same compressed by gzip(1), .pftrace is for ui.perfetto.dev. Only
                        its owner can read a new file
      --seconds N       how long to record (default: a second; a program until it ends). The program goes on
                        afterwards, and the command ends with it. With PID an interrupt or SIGTERM ends it earlier
      --last TIME       write only the last part of what was recorded, such as 2s, 500ms or 800us
      --limit SIZE      write only the last part that fits into a file of that size, such as 50M, 800K or 1G. An event
                        takes some 320 bytes in .json, 120 in .pftrace, 15 in .json.gz, and 9 in .html
      --library PATH    the libdispatch.so to run the program on, as for 'concourse run'
      --recording FILE  reads what a flight recorder (CONCOURSE_RECORDER) has left instead
      --help            prints this text

    A program that contains Concourse is run as it is, another one as 'concourse run' does. Recording another process
    needs the permissions of ptrace (see ptrace(2)).

    Exit status: 0 if the file was written, the program's if one was run, else 125.
    """
}

/// How a trace is written.
enum TraceFormat {
  case json, compressedJSON, pftrace, html

  /// As the ending of the path says; nil if it is another.
  init?(path: String) {
    let endings: [(String, TraceFormat)] = [
      (".json.gz", .compressedJSON), (".json", .json), (".pftrace", .pftrace), (".html", .html),
    ]
    guard let format = endings.first(where: { path.hasSuffix($0.0) })?.1 else { return nil }
    self = format
  }

  func write(_ recording: Recording, functions: @escaping (UInt64) -> String) throws(RecordingFailure)
    -> [UInt8]
  {
    switch self {
    case .json: return TraceJSON.write(recording, functions: functions)
    case .compressedJSON: return try Gzip.compress(TraceJSON.write(recording, functions: functions))
    case .pftrace: return TracePerfetto.write(recording, functions: functions)
    case .html: return TracePage.write(recording, functions: functions)
    }
  }
}
