/// The model's two clocks: virtual time, which passes only while no coroutine can run.
enum Clock {
  /// The clocks' value at the start of an execution; not 0, which the engine may use as "never set".
  static let uptimeAtStart: UInt64 = 1_000_000_000
  static let wallAtStart: UInt64 = 1_700_000_000_000_000_000

  static func uptime() -> UInt64 { uptimeAtStart &+ (Scheduler.current?.elapsed ?? 0) }

  static func sinceStart() -> UInt64 { uptime() }

  static func wall() -> UInt64 { wallAtStart &+ (Scheduler.current?.elapsed ?? 0) }
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
