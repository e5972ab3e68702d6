/// The command line of `concourse report`.
struct ReportOptions: CommandOptions {
  enum Target: Equatable {
    case process(Int32)
    case core(String)
    case recording(String)
  }

  var target = Target.process(0)
  var isJSON = false
  var showsAll = false
  var showsTasks = false

  func validate() throws(UsageError) {
    guard case .recording = target else { return }
    if isJSON { throw UsageError("--recording has no --json") }
    if showsTasks { throw UsageError("--recording has no --tasks") }
  }

  static let command = "report"

  static var syntax: CommandSyntax<ReportOptions> {
    CommandSyntax(
      forms: ["[options] PID", "[options] --core FILE", "[--all] --recording FILE"],
      about: """
        Prints what a process that runs on Concourse waits for, even if it hangs or is stopped: the cause, if there
        is one, then its pool, queues, threads, tasks, who waits for whom, sources and timers. The process does not
        notice: the command reads its memory, and stops only threads that are running, for some microseconds each.
        """,
      options: [
        .file("--core", "reads a core dump instead", target: Target.core),
        .file(
          "--recording",
          """
          reads what a flight recorder (CONCOURSE_RECORDER) has left: what each thread was in at
          the end, items that had not started, and the last events
          """, target: Target.recording),
        .flag(
          "--tasks", \.showsTasks, true,
          "lists each task of Swift Concurrency, with its children, instead of a line for each place"),
        .flag("--json", \.isJSON, true, "prints JSON (not of a recording)"),
        .flag("--all", \.showsAll, true, "also shows idle queues, whole stacks, and all rows or events"),
      ],
      notes: """
        Reading another process needs the permissions of ptrace (see ptrace(2)). Files and lines are shown if the
        program has debug information and llvm-symbolizer is on PATH or beside swift.

        Exit status: 0 if the report was printed, else 125.
        """,
      process: Target.process, noTarget: "no process given", manyTargets: "more than one process given")
  }
}
