/// What the user asked for.
package struct Options: Sendable {
  package enum Format: Sendable { case text, json }

  package var roots: [Bytes] = []
  package var follow = false
  package var hardLinks = false
  package var empty = false
  package var minimumSize: Int64 = 0
  package var jobs: Int?
  package var format = Format.text
  package var endsNamesWithNull = false
  package var quiet = false

  /// Whether to show progress; nil leaves it to whether standard error is a terminal.
  package var progress: Bool?

  package init() {}

  var selection: Selection {
    Selection(followsSymbolicLinks: follow, minimumSize: max(minimumSize, empty ? 0 : 1))
  }
}

/// What the command line says to do.
package enum Command: Sendable {
  case search(Options)
  case help
  case version
}

/// A command line that makes no sense, and why.
package struct UsageError: Error, Equatable {
  package let message: String
}
