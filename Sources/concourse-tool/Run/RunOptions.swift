/// The command line of `concourse run`.
struct RunOptions: CommandOptions {
  /// The place of the program among the arguments.
  var target = 0
  /// Also switches the program's children.
  var children = false
  /// Only reports whether the program can be switched.
  var check = false
  /// Runs the program even if the check fails.
  var force = false
  /// Reports the decisions.
  var verbose = false
  /// The shared library, if not the one beside the command.
  var library: String?
  /// What a task that blocks its thread does: report or trap.
  var strict: String?
  /// The number of threads for tasks.
  var pool: Int?

  static let command = "run"

  static var syntax: CommandSyntax<RunOptions> {
    CommandSyntax(
      forms: ["[options] [--] program [argument ...]"],
      about: """
        Runs a finished program on Concourse instead of the libdispatch.so for which it was built. The program
        replaces the command: it has the same process identifier, terminal and descriptors.
        """,
      options: [
        .flag(
          "--children", \.children, true, "also switches the program's children; use it for a script"),
        .library(
          \.library,
          """
          the libdispatch.so to use (default: the one in ../lib, ../lib/concourse,
          ../lib/\(LibrarySearch.triplet)/concourse or the command's own directory,
          relative to that directory)
          """),
        .flag(
          "--check", \.check, true,
          "reports whether the program can be switched, without running it: status 0 if so, else 1"),
        .optional(
          "--strict", as: "trap",
          """
          names each place at which a task blocks its thread; with trap, the first one ends
          the program
          """, "report or trap", { ["": "report", "report": "report", "trap": "trap"][$0] }
        ) { $0.strict = $1 },
        .value(
          "--pool", as: "N",
          "gives tasks N threads, which are not replaced when they block",
          "a number of threads from 1 to 4096", { Int($0).flatMap { (1...4096).contains($0) ? $0 : nil } }
        ) { $0.pool = $1 },
        .flag("--force", \.force, true, "runs the program even if it will not be switched"),
        .flag(
          "--verbose", \.verbose, true,
          "reports each decision, and the library's version, on standard error"),
      ],
      notes: """
        A program cannot be switched if it is statically linked, setuid or setgid, has file capabilities, is a
        script, is built for another processor or C library, does not use libdispatch.so, or contains its own.

        Exit status: the program's; 125 if the command fails or the program cannot be switched, 126 if the program
        was found but cannot be run, 127 if it was not found.
        """,
      program: { $0 }, noTarget: "no program given")
  }
}
