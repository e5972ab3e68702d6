/// Since when an item that arrives may have been given out, although this process may have been stopped.
///
/// A process that was stopped finds items in its socket whose deadline may have passed: another worker has them by then.
/// Their messages do not say when they were sent. So the source looks at the clock each `interval`. If a look is late,
/// whatever arrives may be as old as the look before, until a message of this process to itself has come back: the servers
/// sent that after all that was in the socket.
struct NATSPulse {
  /// Between two looks, while items may come.
  let interval: Duration
  /// A later look is late.
  private let longestGap: Duration
  private var last: ContinuousClock.Instant
  /// The look before the first one that was late, if something may be in the socket since then.
  private var before: ContinuousClock.Instant?
  private var gaps = 0

  init(patience: Duration, at now: ContinuousClock.Instant) {
    interval = min(.seconds(1), patience / 4)
    longestGap = interval * 2
    last = now
  }

  /// Nothing could come before, so nothing was looked at.
  mutating func begin(at now: ContinuousClock.Instant) { last = now }

  /// - Returns: What the process has to send to itself, if anything.
  mutating func look(at now: ContinuousClock.Instant) -> String? {
    if now - last > longestGap {
      before = before ?? last
      gaps += 1
    }
    last = now
    return before == nil ? nil : "pulse-\(gaps)"
  }

  /// What it has sent to itself has come back.
  mutating func hasReturned(_ name: some StringProtocol) { if name == "pulse-\(gaps)" { before = nil } }

  /// When an item that arrives now may have been given out.
  func earliest(at now: ContinuousClock.Instant) -> ContinuousClock.Instant { before ?? now }
}
