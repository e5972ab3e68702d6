extension DispatchSource {
  /// How a timer fires.
  public struct TimerFlags: OptionSet, RawRepresentable, Sendable {
    /// The bits, as in the C interface.
    public let rawValue: UInt
    /// Makes flags from the C interface's bits.
    public init(rawValue: UInt) { self.rawValue = rawValue }
    /// Honour the leeway, however small. Accepted for compatibility: timers always honour the leeway, apart from the
    /// 200 µs that `DispatchSourceTimer` documents for dense timers.
    public static let strict = TimerFlags(rawValue: 1)
  }

  /// Creates a timer. It fires only after `schedule` has programmed it.
  ///
  /// Traps on unknown flags.
  /// - Parameters:
  ///   - flags: see `TimerFlags`.
  ///   - queue: the queue on which the handlers run; nil means the default global queue.
  /// Matching C function: `dispatch_source_create` with `DISPATCH_SOURCE_TYPE_TIMER`.
  public class func makeTimerSource(
    flags: TimerFlags = [], queue: DispatchQueue? = nil
  ) -> any DispatchSourceTimer {
    guard flags.isSubset(of: .strict) else {
      Trap.clientBug(508, "makeTimerSource(flags:) with unknown bits 0x\(String(flags.rawValue, radix: 16))")
    }
    return DispatchSource(
      SourceCore(
        kind: .timer, handle: 0, mask: flags.rawValue, merging: .add, target: queue, backend: TimerBackend()))
  }
}

/// A source that calls its handler at one time or at regular times. Its `data` counts the intervals that have elapsed
/// since the last call.
///
/// All `schedule` members discard the intervals that have accumulated, may be called at any time and from any thread,
/// and have no effect after `cancel()`. A time in the past fires at once; `.distantFuture` disarms the timer until it
/// is scheduled again. A repeating timer fires at the start plus whole multiples of the interval, without drift.
///
/// A timer never fires early. If a thread and a processor are free, the first call is late by at most `leeway`, and
/// later calls by at most the smaller of `leeway` and half the interval; within the leeway, timers fire together to
/// save wake-ups. A timer that is due within 200 µs after other timers of its clock may also be late by the rest of
/// that time.
///
/// Calls on a source that is not a timer trap. Matching C function: `dispatch_source_set_timer`.
public protocol DispatchSourceTimer: DispatchSourceProtocol {
  /// See `schedule(deadline:repeating:leeway:)`. Each requirement has a `schedule` member that replaces it.
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
  /// - Parameters:
  ///   - deadline: the earliest time of the call.
  ///   - leeway: how much later the call may come, to save wake-ups.
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
  /// - Parameters:
  ///   - deadline: the earliest time of the first call.
  ///   - interval: the time between two calls.
  ///   - leeway: how much later a call may come, to save wake-ups.
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
  ///   - interval: the time between two calls; `.never` to fire once. 0 counts as a nanosecond. Negative intervals
  ///     trap.
  ///   - leeway: how late calls may be; more than a minute counts as a minute. `.never` leaves it to the runtime: half
  ///     the interval, and 0 for a timer that fires once. Negative leeways trap.
  /// Matching C function: `dispatch_source_set_timer`.
  public func schedule(
    deadline: DispatchTime, repeating interval: DispatchTimeInterval = .never,
    leeway: DispatchTimeInterval = .nanoseconds(0)
  ) {
    program(Deadline(deadline), TimerInterval(interval), leeway)
  }

  /// As `schedule(deadline:repeating:leeway:)`, with the interval in seconds. Infinity fires once; NaN and negative
  /// values trap.
  public func schedule(
    deadline: DispatchTime, repeating interval: Double, leeway: DispatchTimeInterval = .nanoseconds(0)
  ) {
    program(Deadline(deadline), TimerInterval(seconds: interval), leeway)
  }

  /// As `schedule(deadline:repeating:leeway:)`, on the wall clock: setting the clock moves the times.
  public func schedule(
    wallDeadline: DispatchWallTime, repeating interval: DispatchTimeInterval = .never,
    leeway: DispatchTimeInterval = .nanoseconds(0)
  ) {
    program(Deadline(wallDeadline), TimerInterval(interval), leeway)
  }

  /// As `schedule(wallDeadline:repeating:leeway:)`, with the interval in seconds. Infinity fires once; NaN and
  /// negative values trap.
  public func schedule(
    wallDeadline: DispatchWallTime, repeating interval: Double, leeway: DispatchTimeInterval = .nanoseconds(0)
  ) {
    program(Deadline(wallDeadline), TimerInterval(seconds: interval), leeway)
  }

  /// Programs the timer with `Duration`s, on the uptime clock.
  /// - Parameters:
  ///   - delay: the time from now to the first call.
  ///   - interval: the time between two calls; nil to fire once.
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
      Trap.clientBug(505, "schedule(…) on \(core.description), which is not a timer")
    }
    let slack = TimerInterval(leeway)
    guard let nanoseconds = interval.nanoseconds, let allowed = slack.nanoseconds else {
      // Invalid arguments are ignored after `cancel`; the backend ignores valid ones.
      if core.isCancelled { return }
      if interval.nanoseconds == nil {
        Trap.clientBug(506, "schedule(…) with the interval \(interval.given): it must not be negative or NaN")
      }
      Trap.clientBug(507, "schedule(…) with the leeway \(slack.given): it must not be negative")
    }
    backend.program(
      TimerSchedule(
        start: start, now: Clock.uptime(), interval: nanoseconds == .max ? nil : nanoseconds,
        leeway: allowed))
  }
}

/// A client's interval, converted to nanoseconds.
private struct TimerInterval {
  /// nil if the interval is invalid; `UInt64.max` for never.
  let nanoseconds: UInt64?
  private let argument: Argument

  private enum Argument {
    case interval(DispatchTimeInterval)
    case seconds(Double)
  }

  /// The interval as the client gave it, for messages.
  var given: String {
    switch argument {
    case .interval(let interval): "\(interval)"
    case .seconds(let seconds): "\(seconds) s"
    }
  }

  init(_ interval: DispatchTimeInterval) {
    argument = .interval(interval)
    let count = interval.saturatedNanoseconds
    nanoseconds = count == .max ? .max : UInt64(exactly: count)
  }

  init(seconds: Double) {
    argument = .seconds(seconds)
    let count = seconds * 1e9
    // NaN fails every comparison.
    nanoseconds = count >= 0 ? (count < 9.2e18 ? UInt64(count) : .max) : nil
  }
}

extension DispatchSource: DispatchSourceTimer {}

/// The program of a timer source. Pure: the current time comes in as an argument.
struct TimerSchedule: Equatable {
  /// The next time to fire.
  private(set) var next: UInt64
  /// The time between two calls; 0 for a timer that fires once.
  private let period: UInt64
  /// How late the first and the later calls may be.
  private var leeway: UInt64
  private let laterLeeway: UInt64
  let clock: TimerWindow.Clock
  private var hasEnded = false

  /// A minute, in nanoseconds. A longer leeway counts as this.
  private static let longestLeeway: UInt64 = 60_000_000_000

  /// Never fires.
  static var disarmed: TimerSchedule { TimerSchedule(start: .never, now: 0, interval: nil, leeway: 0) }

  /// A leeway from here on states no bound. A first call could then be a minute late, and a program that waits for it
  /// would seem to hang.
  private static let unbounded = UInt64(Int64.max)

  /// - Parameters:
  ///   - now: the current uptime; evaluated only for an immediate start.
  ///   - interval: in nanoseconds; 0 counts as 1.
  ///   - leeway: in nanoseconds; `Int64.max` or more counts as half the interval.
  init(start: Deadline, now: @autoclosure () -> UInt64, interval: UInt64?, leeway: UInt64) {
    switch start {
    case .never: (clock, next) = (.never, .max)
    case .immediate: (clock, next) = (.uptime, now())
    case .uptime(let time): (clock, next) = (.uptime, time)
    case .wall(let time): (clock, next) = (.wall, time)
    }
    period = interval.map { max($0, 1) } ?? 0
    self.leeway = min(leeway < Self.unbounded ? leeway : period / 2, Self.longestLeeway)
    laterLeeway = period > 0 ? min(self.leeway, period / 2) : self.leeway
  }

  /// When the event loop should fire the timer, or never.
  var window: TimerWindow {
    guard clock != .never, !hasEnded else { return TimerWindow(.never) }
    let (latest, overflow) = next.addingReportingOverflow(leeway)
    return TimerWindow(clock: clock, earliest: next, latest: overflow ? .max : latest)
  }

  /// Counts the times that have passed and advances to the next one, without drift.
  mutating func elapse(now: UInt64) -> UInt {
    guard clock != .never, !hasEnded, now >= next else { return 0 }
    guard period > 0 else {
      hasEnded = true
      return 1
    }
    let missed = (now - next) / period
    let (moved, overflow) = next.addingReportingOverflow(
      (missed + 1).multipliedReportingOverflow(by: period).partialValue)
    next = moved
    hasEnded = overflow
    leeway = laterLeeway
    return UInt(missed + 1)
  }
}

/// The backend of a timer source: itself a timer of the event loop.
// SAFETY: mutable fields are GUARDED BY `lock`, so accesses cannot overlap and need no dynamic exclusivity checks.
final class TimerBackend: LoopTimer, SourceBackend, @unchecked Sendable {
  private let lock = Lock(.timerBackend)
  @exclusivity(unchecked) private var schedule = TimerSchedule.disarmed
  /// Set from `install` to `remove`; the timer is armed only in that time.
  @exclusivity(unchecked) private var source: SourceCore?

  /// Whether the timer has raised an event that `collect` has not taken yet. `rearm` skips the timer then.
  @exclusivity(unchecked) private var hasRaised = false

  init() { super.init(owner: nil) }

  /// Programs the timer, and discards the intervals that have accumulated.
  func program(_ schedule: TimerSchedule) {
    let isDue = lock.withLock { () -> Bool in
      self.schedule = schedule
      guard let source else { return false }
      source.discardEvents()
      hasRaised = false
      return !setUnlessDue(schedule.window)
    }
    if isDue { fire() }
  }

  func install(for source: SourceCore) {
    let isDue = lock.withLock { () -> Bool in
      self.source = source
      return !setUnlessDue(schedule.window)
    }
    if isDue { fire() }
  }

  override func fire() {
    let source = lock.withLock { () -> SourceCore? in
      hasRaised = true
      return self.source
    }
    source?.raise(1)
  }

  /// Counts now rather than when the timer fired, to include the intervals that elapsed while the source or its queue
  /// was suspended or waiting for a thread.
  func collect(_ pending: UInt) -> UInt? {
    lock.withLock {
      hasRaised = false
      let now = schedule.clock == .wall ? Clock.wall() : Clock.uptime()
      let count = schedule.elapse(now: now)
      return count > 0 ? count : nil
    }
  }

  func rearm() { lock.withLock { if source != nil && !hasRaised { set(schedule.window) } } }

  func restart() {
    _ = collect(0)
    rearm()
  }

  func remove() {
    // Release the source outside the lock.
    let last = lock.withLock { () -> SourceCore? in
      cancel()
      defer { source = nil }
      return source
    }
    withExtendedLifetime(last) {}
  }
}
