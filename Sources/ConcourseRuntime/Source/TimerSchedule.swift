/// What a timer source has been programmed to do. Pure: times come in as arguments.
struct TimerSchedule: Equatable {
  let clock: TimerWindow.Clock
  /// The next time to fire.
  private(set) var next: UInt64
  /// Between two times; nil for a timer that fires once.
  let interval: UInt64?
  /// How late the first and the later calls may be.
  private var leeway: UInt64
  private let laterLeeway: UInt64
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
    self.interval = interval.map { max($0, 1) }
    self.leeway = leeway
    laterLeeway = self.interval.map { min(leeway, $0 / 2) } ?? leeway
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
    guard let interval else {
      hasEnded = true
      return 1
    }
    let missed = (now - next) / interval
    let (moved, overflow) = next.addingReportingOverflow(
      (missed + 1).multipliedReportingOverflow(by: interval).partialValue)
    next = moved
    hasEnded = overflow
    leeway = laterLeeway
    return UInt(missed + 1)
  }
}
