/// What the user asked for.
package struct Options: Sendable {
  /// Files and directories, in the order given.
  package var paths: [Bytes] = []
  /// How many of the last lines to begin with; nil for all.
  package var lines: Int? = 10
  /// nil leaves it to how many files there are.
  package var style: Multiplexer.Style?
  /// Of the files in directories, only those with such names; all if there are none.
  package var patterns: [Bytes] = []
  package var exitsWhenGone = false
  /// Ends when nothing has come for so long, in milliseconds.
  package var idleExit: Int?
  /// How often what no event tells of is looked at, in milliseconds.
  package var recheck = 1000
  /// How long a file that has lost its name is followed after its last line, in milliseconds.
  package var linger = 5000
  /// How much may wait for the standard output, in bytes; more is not read.
  package var buffer = 1 << 20
  package var quiet = false

  package init() {}
}

/// What the command line says to do.
package enum Command: Sendable {
  case follow(Options)
  case help
  case version
}

/// A command line that makes no sense, and why.
package struct UsageError: Error, Equatable {
  package let message: String
}
