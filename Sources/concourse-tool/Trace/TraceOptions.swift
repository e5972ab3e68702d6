/// The command line of `concourse trace`.
struct TraceOptions: CommandOptions {
  enum Target: Equatable {
    case process(Int32)
    /// The index of the program among the arguments.
    case program(Int)
    case recording(String)
  }

  var target = Target.process(0)
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

  func validate() throws(UsageError) {
    guard output.map({ TraceFormat(path: $0) != nil }) ?? true else {
      throw UsageError("the name of the output must end in .json, .json.gz, .pftrace or .html")
    }
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

  static let command = "trace"

  static var syntax: CommandSyntax<TraceOptions> {
    CommandSyntax(
      forms: ["[options] PID", "[options] [--] program [argument ...]", "[options] --recording FILE"],
      about: """
        Records what a process on Concourse does, and writes a file that shows it: a track for each thread and for
        each queue, items, arrows from submission to start, waits, and counters. Of a process that goes on, it also
        says where its tasks of Swift Concurrency are suspended or enqueued at the end of the recording.
        """,
      options: [
        .text(
          "-o", "--output", as: "FILE",
          """
          the file to write (default: concourse-PID.json, or with a number if that name is taken). Its
          ending chooses the format: .html is a page for any browser, .json is the Trace Event
          Format, .json.gz is the same compressed by gzip(1), .pftrace is for ui.perfetto.dev. Only
          its owner can read a new file
          """
        ) { $0.output = $1 },
        .value(
          "--seconds", as: "N",
          """
          how long to record (default: a second; a program until it ends). The program goes on
          afterwards, and the command ends with it. With PID an interrupt or SIGTERM ends it earlier
          """, "a number of seconds from 0.001 to 86400", seconds(in: 0.001...86400)
        ) { $0.seconds = $1 },
        .value(
          "--last", as: "TIME",
          "write only the last part of what was recorded, such as 2s, 500ms or 800us",
          "a time of at most a day, such as 2, 2s, 500ms or 800us", duration
        ) { $0.last = $1 },
        .value(
          "--limit", as: "SIZE",
          """
          write only the last part that fits into a file of that size, such as 50M, 800K or 1G. An event
          takes some 320 bytes in .json, 120 in .pftrace, 15 in .json.gz, and 9 in .html
          """, "a size, such as 50M, 800K or 1G", size
        ) { $0.limit = $1 },
        .library(\.library),
        .file(
          "--recording", "reads what a flight recorder (CONCOURSE_RECORDER) has left instead",
          target: Target.recording),
      ],
      notes: """
        A program that contains Concourse is run as it is, another one as 'concourse run' does. Recording another process
        needs the permissions of ptrace (see ptrace(2)).

        Exit status: 0 if the file was written, the program's if one was run, else 125.
        """,
      process: Target.process, program: Target.program, noTarget: "no process and no program given",
      manyTargets: "only one process, program or recording can be given")
  }
}
