import Glibc

/// Signal sources on the main queue: an event handler may do what no signal handler may.
final class Signals {
  private let sources: [any DispatchSourceSignal]

  /// Catches the signals. SIGTERM and SIGINT are left alone if they are ignored already: a process started
  /// with `nohup`, or in the background by a shell, is meant to ignore them.
  ///
  /// - Parameters:
  ///   - handle: called on the main queue with the signal's number.
  ///   - whenReady: called on the main queue once all signals are caught. A signal that came earlier might
  ///     be lost, so this is the time to tell others that we are here.
  init(handle: @escaping (Int32) -> Void, whenReady: @escaping () -> Void) {
    let wanted = [SIGTERM, SIGINT].filter { !Signals.isIgnored($0) } + [SIGUSR1]
    var sources: [any DispatchSourceSignal] = []
    let waiting = Waiting(count: wanted.count, whenReady)
    for number in wanted {
      // What the signal does by itself, which is to end the process, it must not do any more.
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: .main)
      source.setRegistrationHandler { waiting.oneIsReady() }
      source.setEventHandler { handle(number) }
      sources.append(source)
    }
    self.sources = sources
    for source in sources { source.resume() }
  }

  private static func isIgnored(_ signal: Int32) -> Bool {
    var action = sigaction()
    guard sigaction(signal, nil, &action) == 0 else { return false }
    // SAFETY: SIG_IGN is the address 1, no function; the bits are only compared and never called.
    return unsafeBitCast(action.__sigaction_handler.sa_handler, to: UInt.self) == 1
  }

  /// Used on the main queue only.
  private final class Waiting {
    private var count: Int
    private let whenReady: () -> Void

    init(count: Int, _ whenReady: @escaping () -> Void) {
      self.count = count
      self.whenReady = whenReady
    }

    func oneIsReady() {
      count -= 1
      if count == 0 { whenReady() }
    }
  }
}
