import ConcourseSchedules

/// The command line of `concourse explore`.
struct ExploreOptions: CommandOptions {
  /// The place of the program among the arguments.
  var target = 0
  /// How many schedules to run; nil for as many as `seconds` allows.
  var schedules: Int?
  var seconds: Double?
  /// nil: all in turn.
  var strategy: ExploringStrategy?
  var depth: UInt32 = 3
  var seed: UInt64 = 1
  /// Decisions after which a run has failed.
  var steps: UInt64?
  var isRealTime = false
  /// Whether the program is built with the thread sanitizer, and its report counts as found.
  var findsRaces = false
  /// How many programs run at once; nil for one on each processor.
  var jobs: Int?
  var shrinks = true
  /// The page to write.
  var output: String?
  /// A token, or a file that begins with one.
  var replay: String?
  /// The exploring library, if not the one beside the command's.
  var library: String?

  static let defaultSchedules = 1000

  func validate() throws(UsageError) {
    guard schedules == nil || seconds == nil else {
      throw UsageError("--schedules and --seconds exclude each other")
    }
    guard replay == nil || schedules == nil && seconds == nil && strategy == nil else {
      throw UsageError("--replay runs one schedule, which its token describes")
    }
    guard output.map({ TraceFormat(path: $0) == .html }) ?? true else {
      throw UsageError("the name of the output must end in .html")
    }
  }

  private static func number<Value: FixedWidthInteger>(in range: ClosedRange<Value>) -> (String) -> Value? {
    { Value($0).flatMap { range.contains($0) ? $0 : nil } }
  }

  static let command = "explore"

  static var syntax: CommandSyntax<ExploreOptions> {
    CommandSyntax(
      forms: ["[options] [--] program [argument ...]", "--replay TOKEN [--] program [argument ...]"],
      about: """
        Runs a finished program again and again, each time with its threads in another order, until it crashes, ends with
        a status other than 0, or never ends. What was found is reduced to few switches between threads, explained, and
        repeated by a token.
        """,
      options: [
        .value(
          "--schedules", as: "N", "how many orders to try (default: \(defaultSchedules))",
          "a number of schedules from 1 to 1000000000", number(in: 1...1_000_000_000)
        ) { $0.schedules = $1 },
        .value(
          "--seconds", as: "S", "try orders for so long instead",
          "a number of seconds from 0.001 to 86400", seconds(in: 0.001...86400)
        ) { $0.seconds = $1 },
        .value(
          "--strategy", as: "NAME",
          """
          how an order is chosen: random, pct (few changes of priority, with a bound on the probability)
          or pos (random priorities of operations); default: each in turn
          """, "a strategy: random, pct or pos", { ExploringStrategy(rawValue: $0) }
        ) { $0.strategy = $1 },
        .value(
          "--depth", as: "D", "pct: how many orders of two operations a bug needs (default: 3)",
          "a depth from 1 to 20", number(in: 1...20)
        ) { $0.depth = $1 },
        .value(
          "--seed", as: "N", "begin with another seed; the same seed gives the same orders (default: 1)",
          "a seed", number(in: 0...UInt64.max / 2)
        ) { $0.seed = $1 },
        .value(
          "--steps", as: "N", "a run that makes more decisions than that has failed", "a number of steps",
          number(in: 1...UInt64.max / 2)
        ) { $0.steps = $1 },
        .value(
          "--time", as: "KIND",
          """
          virtual: clocks stand, and jump to the next deadline when no thread can go on (default);
          real: clocks are the system's
          """, "a kind of time: virtual or real", { ["virtual": false, "real": true][$0] }
        ) { $0.isRealTime = $1 },
        .flag(
          "--races", \.findsRaces, true,
          """
          also find two accesses to the same memory that nothing orders; the program must be built with the thread
          sanitizer (swiftc -sanitize=thread, clang -fsanitize=thread)
          """),
        .value(
          "--jobs", as: "N", "how many runs at the same time (default: one on each processor)",
          "a number of runs from 1 to 1024", number(in: 1...1024)
        ) { $0.jobs = $1 },
        .flag("--no-shrink", \.shrinks, false, "keep all switches of what was found"),
        .text("-o", "--output", as: "FILE", "write what was found as a page (.html)") { $0.output = $1 },
        .text("--replay", as: "TOKEN", "repeat a schedule; also the file that has the token") {
          $0.replay = $1
        },
        .library(
          \.library, "the libdispatch-exploring.so to use (default: the one beside that of 'concourse run')"),
      ],
      notes: """
        One thread runs at a time. It can change at each operation of Dispatch, each job of Swift Concurrency, and each
        lock, wait, sleep and transfer of the system's. Memory that threads share without any of these is seen by --races.
        The program's input is /dev/null, or the same file each time, and TMPDIR an empty folder, which is removed at the
        end. Its output is shown if it fails.

        Exit status: 1 if a failure was found, 0 if not, 125 if the program cannot be explored.
        """,
      program: { $0 }, noTarget: "no program given")
  }
}
