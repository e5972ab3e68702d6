extension DispatchSource {
  /// How a timer fires.
  public struct TimerFlags: OptionSet, RawRepresentable, Sendable {
    /// The bits, as in the C interface.
    public let rawValue: UInt
    /// Makes flags from the C interface's bits.
    public init(rawValue: UInt) { self.rawValue = rawValue }
    /// Honour the leeway, however small. Ours always is, but for 200 µs among dense timers; accepted for
    /// what it says.
    public static let strict = TimerFlags(rawValue: 1)
  }

  /// Creates a timer. It never fires until `schedule` has programmed it.
  ///
  /// Traps on unknown flags.
  /// - Parameters:
  ///   - flags: see `TimerFlags`.
  ///   - queue: where the handlers run; nil means the default global queue.
  /// Matching C function: `dispatch_source_create` with `DISPATCH_SOURCE_TYPE_TIMER`.
  public class func makeTimerSource(
    flags: TimerFlags = [], queue: DispatchQueue? = nil
  ) -> any DispatchSourceTimer {
    guard flags.isSubset(of: .strict) else {
      Trap.clientBug("makeTimerSource(flags:) with unknown bits 0x\(String(flags.rawValue, radix: 16))")
    }
    return DispatchSource(
      SourceCore(
        kind: .timer, handle: 0, mask: flags.rawValue, merging: .add, target: queue, backend: TimerBackend()))
  }
}

/// A source that calls its handler at one time or at regular times. Its `data` counts the intervals that
/// have elapsed since the last call.
///
/// All `schedule` members discard what has accumulated, may be called at any time and from any thread, and
/// are ignored after `cancel()`. A time that has passed fires at once; `.distantFuture` disarms the timer
/// until it is scheduled again. A repeating timer fires at the start plus whole multiples of the interval,
/// without drift. Never early; the first call is late by `leeway` at most and later ones by the smaller of
/// `leeway` and half the interval, as far as a thread and a processor are free: within the leeway, timers
/// fire together to spare wake-ups. Within 200 µs after other timers of its clock a timer may be late by the
/// rest of that time. Calls on a source that is no timer trap. Matching C function:
/// `dispatch_source_set_timer`.
public protocol DispatchSourceTimer: DispatchSourceProtocol {
  /// See `schedule(deadline:repeating:leeway:)`; so with all requirements.
  @available(swift, deprecated: 4)
  func scheduleOneshot(deadline: DispatchTime, leeway: DispatchTimeInterval)
  /// See `schedule(wallDeadline:repeating:leeway:)`.
  @available(swift, deprecated: 4)
  func scheduleOneshot(wallDeadline: DispatchWallTime, leeway: DispatchTimeInterval)
  /// See `schedule(deadline:repeating:leeway:)`.
  @available(swift, deprecated: 4)
  func scheduleRepeating(deadline: DispatchTime, interval: DispatchTimeInterval, leeway: DispatchTimeInterval)
  /// See `schedule(deadline:repeating:leeway:)`.
  @available(swift, deprecated: 4)
  func scheduleRepeating(deadline: DispatchTime, interval: Double, leeway: DispatchTimeInterval)
  /// See `schedule(wallDeadline:repeating:leeway:)`.
  @available(swift, deprecated: 4)
  func scheduleRepeating(
    wallDeadline: DispatchWallTime, interval: DispatchTimeInterval, leeway: DispatchTimeInterval)
  /// See `schedule(wallDeadline:repeating:leeway:)`.
  @available(swift, deprecated: 4)
  func scheduleRepeating(wallDeadline: DispatchWallTime, interval: Double, leeway: DispatchTimeInterval)
}

extension DispatchSourceTimer {
  /// Fires once.
  @available(swift, deprecated: 4, renamed: "schedule(deadline:repeating:leeway:)")
  public func scheduleOneshot(deadline: DispatchTime, leeway: DispatchTimeInterval = .nanoseconds(0)) {
    schedule(deadline: deadline, repeating: .never, leeway: leeway)
  }

  /// Fires once, by the wall clock.
  @available(swift, deprecated: 4, renamed: "schedule(wallDeadline:repeating:leeway:)")
  public func scheduleOneshot(wallDeadline: DispatchWallTime, leeway: DispatchTimeInterval = .nanoseconds(0))
  {
    schedule(wallDeadline: wallDeadline, repeating: .never, leeway: leeway)
  }

  /// Fires repeatedly.
  @available(swift, deprecated: 4, renamed: "schedule(deadline:repeating:leeway:)")
  public func scheduleRepeating(
    deadline: DispatchTime, interval: DispatchTimeInterval, leeway: DispatchTimeInterval = .nanoseconds(0)
  ) {
    schedule(deadline: deadline, repeating: interval, leeway: leeway)
  }

  /// Fires repeatedly, the interval in seconds.
  @available(swift, deprecated: 4, renamed: "schedule(deadline:repeating:leeway:)")
  public func scheduleRepeating(
    deadline: DispatchTime, interval: Double, leeway: DispatchTimeInterval = .nanoseconds(0)
  ) {
    schedule(deadline: deadline, repeating: interval, leeway: leeway)
  }

  /// Fires repeatedly, by the wall clock.
  @available(swift, deprecated: 4, renamed: "schedule(wallDeadline:repeating:leeway:)")
  public func scheduleRepeating(
    wallDeadline: DispatchWallTime, interval: DispatchTimeInterval,
    leeway: DispatchTimeInterval = .nanoseconds(0)
  ) {
    schedule(wallDeadline: wallDeadline, repeating: interval, leeway: leeway)
  }

  /// Fires repeatedly, by the wall clock, the interval in seconds.
  @available(swift, deprecated: 4, renamed: "schedule(wallDeadline:repeating:leeway:)")
  public func scheduleRepeating(
    wallDeadline: DispatchWallTime, interval: Double, leeway: DispatchTimeInterval = .nanoseconds(0)
  ) {
    schedule(wallDeadline: wallDeadline, repeating: interval, leeway: leeway)
  }

  /// Programs the timer, on the uptime clock.
  /// - Parameters:
  ///   - deadline: the first time.
  ///   - interval: between the times; `.never` for once. 0 counts as a nanosecond. Negative ones trap.
  ///   - leeway: how late calls may be; more than a minute counts as a minute. Negative ones trap.
  /// Matching C function: `dispatch_source_set_timer`.
  public func schedule(
    deadline: DispatchTime, repeating interval: DispatchTimeInterval = .never,
    leeway: DispatchTimeInterval = .nanoseconds(0)
  ) {
    program(Deadline(deadline), TimerInterval(interval), leeway)
  }

  /// As `schedule(deadline:repeating:leeway:)`, the interval in seconds: infinity for once; NaN and
  /// negative values trap.
  public func schedule(
    deadline: DispatchTime, repeating interval: Double, leeway: DispatchTimeInterval = .nanoseconds(0)
  ) {
    program(Deadline(deadline), TimerInterval(seconds: interval), leeway)
  }

  /// As `schedule(deadline:repeating:leeway:)`, on the wall clock: the times move with it when it is set.
  public func schedule(
    wallDeadline: DispatchWallTime, repeating interval: DispatchTimeInterval = .never,
    leeway: DispatchTimeInterval = .nanoseconds(0)
  ) {
    program(Deadline(wallDeadline), TimerInterval(interval), leeway)
  }

  /// As `schedule(wallDeadline:repeating:leeway:)`, the interval in seconds: infinity for once; NaN and
  /// negative values trap.
  public func schedule(
    wallDeadline: DispatchWallTime, repeating interval: Double, leeway: DispatchTimeInterval = .nanoseconds(0)
  ) {
    program(Deadline(wallDeadline), TimerInterval(seconds: interval), leeway)
  }

  /// Programs the timer with `Duration`s.
  /// - Parameters:
  ///   - delay: from now to the first time.
  ///   - interval: between the times; nil for once.
  ///   - leeway: how late calls may be.
  public func schedule(after delay: Duration, repeating interval: Duration? = nil, leeway: Duration = .zero) {
    program(
      Deadline(DispatchTime.now() + delay),
      TimerInterval(interval.map { DispatchTimeInterval($0) } ?? .never),
      DispatchTimeInterval(leeway))
  }

  private func program(_ start: Deadline, _ interval: TimerInterval, _ leeway: DispatchTimeInterval) {
    let core = self.core
    guard let backend = core.backend as? TimerBackend else {
      Trap.clientBug("schedule(…) on \(core.description), which is no timer")
    }
    let slack = TimerInterval(leeway)
    guard let nanoseconds = interval.nanoseconds, let allowed = slack.nanoseconds else {
      // Ignored after `cancel`, whatever it is; the backend ignores the rest.
      if core.isCancelled { return }
      if interval.nanoseconds == nil {
        Trap.clientBug("schedule(…) with the interval \(interval.given): it must not be negative or NaN")
      }
      Trap.clientBug("schedule(…) with the leeway \(slack.given): it must not be negative")
    }
    backend.program(
      TimerSchedule(
        start: start, now: Clock.uptime(), interval: nanoseconds == .max ? nil : nanoseconds,
        leeway: min(allowed, 60_000_000_000)))
  }
}

/// An interval as clients give it, made one of nanoseconds.
private struct TimerInterval {
  /// nil if it makes no sense; `UInt64.max` for never.
  let nanoseconds: UInt64?
  private let asked: Asked

  private enum Asked {
    case interval(DispatchTimeInterval)
    case seconds(Double)
  }

  /// What messages say.
  var given: String {
    switch asked {
    case .interval(let interval): "\(interval)"
    case .seconds(let seconds): "\(seconds) s"
    }
  }

  init(_ interval: DispatchTimeInterval) {
    asked = .interval(interval)
    let count = interval.saturatedNanoseconds
    nanoseconds = count == .max ? .max : UInt64(exactly: count)
  }

  init(seconds: Double) {
    asked = .seconds(seconds)
    let count = seconds * 1e9
    // NaN compares with nothing.
    nanoseconds = count >= 0 ? (count < 9.2e18 ? UInt64(count) : .max) : nil
  }
}

extension DispatchSource: DispatchSourceTimer {}
