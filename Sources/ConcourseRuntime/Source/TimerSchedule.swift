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
