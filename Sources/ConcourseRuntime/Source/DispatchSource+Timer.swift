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

/// What a timer source has been programmed to do. Pure: times come in as arguments.
struct TimerSchedule: Equatable {
  /// The next time to fire.
  private(set) var next: UInt64
  /// Between two times; 0 for a timer that fires once.
  private let period: UInt64
  /// How late the first and the later calls may be.
  private var leeway: UInt64
  private let laterLeeway: UInt64
  let clock: TimerWindow.Clock
  private var hasEnded = false

  /// Never fires.
  static var disarmed: TimerSchedule { TimerSchedule(start: .never, now: 0, interval: nil, leeway: 0) }

  /// - Parameters:
  ///   - now: the present uptime, asked for a start that is immediate.
  ///   - interval: in nanoseconds; 0 counts as 1.
  init(start: Deadline, now: @autoclosure () -> UInt64, interval: UInt64?, leeway: UInt64) {
    switch start {
    case .never: (clock, next) = (.never, .max)
    case .immediate: (clock, next) = (.uptime, now())
    case .uptime(let time): (clock, next) = (.uptime, time)
    case .wall(let time): (clock, next) = (.wall, time)
    }
    period = interval.map { max($0, 1) } ?? 0
    self.leeway = leeway
    laterLeeway = period > 0 ? min(leeway, period / 2) : leeway
  }

  /// When the loop is to look, or never.
  var window: TimerWindow {
    guard clock != .never, !hasEnded else { return TimerWindow(.never) }
    let (latest, overflow) = next.addingReportingOverflow(leeway)
    return TimerWindow(clock: clock, earliest: next, latest: overflow ? .max : latest)
  }

  /// Counts the times that have passed and moves on to the next to come, without drift.
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

/// A timer source's part of the event loop: the loop's timer itself.
// SAFETY: what changes is GUARDED BY `lock`, which keeps accesses apart without checks.
final class TimerBackend: LoopTimer, SourceBackend, @unchecked Sendable {
  private let lock = Lock()
  @exclusivity(unchecked) private var schedule = TimerSchedule.disarmed
  /// From `install` to `remove`; the timer is set only then.
  @exclusivity(unchecked) private var source: SourceCore?

  /// Whether the source has been told of a time, and not asked for the count yet: it lets the timer be set then.
  @exclusivity(unchecked) private var hasTold = false

  init() { super.init(owner: nil) }

  /// Programs the timer anew; what has accumulated is void.
  func program(_ schedule: TimerSchedule) {
    let isDue = lock.withLock { () -> Bool in
      self.schedule = schedule
      guard let source else { return false }
      source.discardEvents()
      hasTold = false
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
      hasTold = true
      return self.source
    }
    source?.raise(1)
  }

  /// The count is taken now, not when the timer fired: what elapsed while the source or its queue was
  /// suspended, or waited for a thread, is in it.
  func collect(_ pending: UInt) -> UInt? {
    lock.withLock {
      hasTold = false
      let now = schedule.clock == .wall ? Clock.wall() : Clock.uptime()
      let count = schedule.elapse(now: now)
      return count > 0 ? count : nil
    }
  }

  func rearm() { lock.withLock { if source != nil && !hasTold { set(schedule.window) } } }

  func restart() {
    _ = collect(0)
    rearm()
  }

  func remove() {
    // Released outside the lock.
    let last = lock.withLock { () -> SourceCore? in
      cancel()
      defer { source = nil }
      return source
    }
    withExtendedLifetime(last) {}
  }
}
