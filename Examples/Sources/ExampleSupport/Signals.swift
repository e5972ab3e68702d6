import Glibc

/// Signal sources. Unlike a signal handler, which may not even allocate memory, their handlers may do anything.
// SAFETY: the sources are kept alive here and not used otherwise; their protocol is not Sendable.
package final class Signals: @unchecked Sendable {
  private let sources: [any DispatchSourceSignal]

  /// Catches the signals, except those that the process ignores: `nohup`, and a shell that starts a program in the
  /// background, set them so on purpose.
  ///
  /// - Parameters:
  ///   - queue: a serial queue.
  ///   - whenReady: called on `queue` once all signals are caught. An earlier signal may be lost, so a program tells
  ///     others that it runs no sooner than this.
  ///   - handle: called on `queue` with the number of the signal.
  package init(
    _ numbers: [Int32], queue: DispatchQueue, whenReady: @escaping @Sendable () -> Void = {},
    handle: @escaping @Sendable (Int32) -> Void
  ) {
    let caught = numbers.filter { !Signals.isIgnored($0) }
    let ready = DispatchGroup()
    sources = caught.map { number in
      // The default action would end the process.
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
      ready.enter()
      source.setRegistrationHandler { ready.leave() }
      source.setEventHandler { handle(number) }
      return source
    }
    ready.notify(queue: queue, execute: whenReady)
    for source in sources { source.resume() }
  }

  private static func isIgnored(_ signal: Int32) -> Bool {
    var action = sigaction()
    guard sigaction(signal, nil, &action) == 0 else { return false }
    // SAFETY: SIG_IGN is the number 1 in the place of a function; it is compared and never called.
    return unsafeBitCast(action.__sigaction_handler.sa_handler, to: UInt.self) == 1
  }
}
