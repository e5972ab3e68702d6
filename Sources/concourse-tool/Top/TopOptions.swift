/// The command line of `concourse top`.
struct TopOptions: CommandOptions {
  enum Target: Equatable {
    case process(Int32)
    /// The index of the program among the arguments.
    case program(Int)
  }

  enum Form: Equatable {
    case screen, text, json
  }

  var target = Target.process(0)
  var form = Form.screen
  var isOnce = false
  /// Seconds.
  var interval = 1.0
  var filter = ""
  var order = TopState.Order.rate
  /// The library to run a program on, if not the one beside the command.
  var library: String?

  static let command = "top"

  static var syntax: CommandSyntax<TopOptions> {
    CommandSyntax(
      forms: ["[options] PID", "[options] [--] program [argument ...]"],
      about: """
        Shows what a process on Concourse does, again and again: its queues by rate, with depth, wait time and run
        time (median and 99th percentile), its pool, blocked threads and what they wait for, tasks of Swift
        Concurrency, timers and sources. The ? key explains the keys: sort, filter by label, freeze, look into a
        queue; t shows what the tasks do, and where.
        """,
      options: [
        .value(
          "--interval", as: "N", "seconds between two views, from 0.1 (default: 1)",
          "a number of seconds from 0.1 to 3600", seconds(in: 0.1...3600)
        ) { $0.interval = $1 },
        .value(
          "--sort", as: "COLUMN", "rate, depth, wait, run, busy or name",
          "one of " + TopState.Order.allCases.map(\.rawValue).joined(separator: ", "),
          TopState.Order.init(rawValue:)
        ) { $0.order = $1 },
        .text("--filter", as: "TEXT", "only queues whose label contains the text") { $0.filter = $1 },
        .flag("--once", \.isOnce, true, "one interval as plain text; or as JSON, with --json"),
        .flag(
          "--json", \.form, .json, "a JSON object on one line for each interval; times are in nanoseconds"),
        .flag(
          "--text", \.form, .text, "plain text for each interval; also if the output is not a terminal"),
        .library(\.library),
      ],
      notes: """
        The events are recorded while the command runs (see 'concourse help trace'), so an item of the process takes
        30 to 50 ns longer, or 60 to 110 if there is no free processor for the command; the rest is read from its
        memory, and its threads are not stopped. Tasks are read so rarely that it takes at most a tenth of one
        processor; the view says when. That needs the permissions of ptrace (see ptrace(2)). A program that
        is started here ends with the view; what it prints is shown afterwards, or goes to standard error with --once,
        --json and --text.
        NO_COLOR switches colours off.

        Exit status: 0, or 125 if the process cannot be watched; of a program that ended, its own.
        """,
      process: Target.process, program: Target.program, noTarget: "no process and no program given",
      manyTargets: "only one process or program can be given")
  }
}
