/// The model's two clocks. Virtual time passes while no coroutine can run, and when a scenario moves it.
enum Clock {
  /// The clocks' value at the start of an execution; not 0, which the engine may use as "never set".
  static let uptimeAtStart: UInt64 = 1_000_000_000
  static let wallAtStart: UInt64 = 1_700_000_000_000_000_000

  static func uptime() -> UInt64 {
    Scheduler.current?.lookAtClock()
    return uptimeNow
  }

  static func sinceStart() -> UInt64 { uptime() }

  static func wall() -> UInt64 {
    Scheduler.current?.lookAtClock()
    return wallNow
  }

  static func hasPassed(_ time: UInt64, isWall: Bool) -> Bool { time <= (isWall ? wall() : uptime()) }

  /// The clocks without a scheduling point.
  static var uptimeNow: UInt64 { uptimeAtStart &+ (Scheduler.current?.elapsed ?? 0) }
  static var wallNow: UInt64 {
    wallAtStart &+ (Scheduler.current.map { $0.elapsed &+ UInt64(bitPattern: $0.wallOffset) } ?? 0)
  }
}

extension Deadline {
  /// Virtual nanoseconds since the start of the execution; nil for never.
  var elapsedTime: UInt64? {
    switch self {
    case .immediate: 0
    case .uptime(let time): time > Clock.uptimeAtStart ? time - Clock.uptimeAtStart : 0
    case .wall(let time): time > Clock.wallAtStart ? time - Clock.wallAtStart : 0
    case .never: nil
    }
  }
}
