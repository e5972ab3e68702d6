/// What the user asked for.
package struct Options: Sendable, Equatable {
  package var host = "127.0.0.1"
  /// 0 lets the kernel choose.
  package var port: UInt16 = 7007
  package var maximumConnections = 5_000
  /// Seconds that clients have to take their pending output once the server is told to stop.
  package var grace = 5
  package var quiet = false

  package init() {}
}

/// What the command line says to do.
package enum Command: Sendable, Equatable {
  case serve(Options)
  case help
  case version
}

/// A command line that makes no sense, and why.
package struct UsageError: Error, Equatable {
  package let message: String
}
