import Glibc

/// The signals that the program listens to, each as a source on one queue.
// SAFETY: the sources are only kept here, and may be used from any thread; their protocol does not say so.
final class Signals: @unchecked Sendable {
  private let sources: [any DispatchSourceSignal]

  /// - Parameters:
  ///   - stop: called for Ctrl-C and SIGTERM, each time.
  ///   - status: called for SIGUSR1.
  init(
    queue: DispatchQueue, stop: @escaping @Sendable (Int32) -> Void, status: @escaping @Sendable () -> Void
  ) {
    sources = [SIGINT, SIGTERM, SIGUSR1].filter { !Signals.isIgnored($0) }.map { signal in
      let source = DispatchSource.makeSignalSource(signal: signal, queue: queue)
      source.setEventHandler { if signal == SIGUSR1 { status() } else { stop(signal) } }
      source.activate()
      return source
    }
    // The error number says it better, and where.
    Glibc.signal(SIGPIPE, SIG_IGN)
  }

  /// A process started with `nohup`, or in the background by a shell, is meant to ignore these signals; a
  /// source would wake them.
  private static func isIgnored(_ signal: Int32) -> Bool {
    var action = sigaction()
    guard sigaction(signal, nil, &action) == 0 else { return false }
    // SAFETY: SIG_IGN is the address 1, no function; the bits are only compared and never called.
    return unsafeBitCast(action.__sigaction_handler.sa_handler, to: UInt.self) == 1
  }
}
