import Glibc

/// Signal sources. Unlike a signal handler, which may not even allocate memory, their handlers may do anything.
package enum Signals {
  /// Catches the signals until the process ends, except those that it ignores: `nohup`, and a shell that starts a
  /// program in the background, set them so on purpose.
  ///
  /// The sources retain themselves. A local variable would not keep them: nothing after `dispatchMain()` is reachable,
  /// so an optimized build releases the variables of its caller before the call.
  ///
  /// - Parameters:
  ///   - queue: a serial queue.
  ///   - whenReady: called on `queue` once all signals are caught.
  ///   - handle: called on `queue` with the number of the signal.
  package static func handle(
    _ numbers: [Int32], on queue: DispatchQueue, whenReady: @escaping @Sendable () -> Void = {},
    _ handle: @escaping @Sendable (Int32) -> Void
  ) {
    let ready = DispatchGroup()
    for number in numbers where !isIgnored(number) {
      #if INCUMBENT
        // The default action would end the process. Concourse's sources replace it.
        signal(number, SIG_IGN)
      #endif
      let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
      ready.enter()
      source.setRegistrationHandler { ready.leave() }
      // The handler retains its source, which is never cancelled.
      source.setEventHandler { withExtendedLifetime(source) { handle(number) } }
      source.resume()
    }
    ready.notify(queue: queue, execute: whenReady)
  }

  private static func isIgnored(_ signal: Int32) -> Bool {
    var action = sigaction()
    guard sigaction(signal, nil, &action) == 0 else { return false }
    // SAFETY: SIG_IGN is the number 1 in the place of a function; it is compared and never called.
    return unsafeBitCast(action.__sigaction_handler.sa_handler, to: UInt.self) == 1
  }
}

/// A source that is on or off. A source counts `suspend` and `resume`, which must be balanced; here each is idempotent.
package struct SwitchedSource {
  package let source: any DispatchSourceProtocol
  private var isOn = false
  private var isCancelled = false

  /// - Parameter source: a source that was not activated yet.
  package init(_ source: any DispatchSourceProtocol) { self.source = source }

  package mutating func resume() {
    guard !isOn, !isCancelled else { return }
    isOn = true
    source.resume()
  }

  package mutating func suspend() {
    guard isOn, !isCancelled else { return }
    isOn = false
    source.suspend()
  }

  /// Cancels the source, and resumes it if necessary: the cancel handler of a suspended source does not run.
  package mutating func cancel() {
    guard !isCancelled else { return }
    isCancelled = true
    source.cancel()
    if !isOn { source.resume() }
  }
}
