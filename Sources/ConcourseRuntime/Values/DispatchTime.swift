// An instant on the uptime clock. How instants move is in TimeArithmetic.swift; how the engine
// reads one as a deadline is in Deadline.swift.

/// An instant on the uptime clock, in nanoseconds; the clock stands still while the machine sleeps.
///
/// An instant of 0 nanoseconds means "now": the runtime reads it as the moment of the call that
/// receives it. Matches C's `dispatch_time_t` where it names the default clock.
@frozen
public struct DispatchTime: Comparable, Sendable {
  /// The instant in the C encoding: 0 is now, all ones is the distant future, any other value is
  /// nanoseconds of uptime.
  public let rawValue: dispatch_time_t

  @inlinable
  init(rawValue: dispatch_time_t) {
    self.rawValue = rawValue
  }

  /// The instant of the call, on the uptime clock (`CLOCK_MONOTONIC`).
  ///
  /// Costs one clock read and no system call. Matches C's `dispatch_time(DISPATCH_TIME_NOW, 0)`.
  public static func now() -> DispatchTime {
    DispatchTime(rawValue: Clock.uptime())
  }

  /// An instant that never comes and that no addition or subtraction moves.
  ///
  /// Matches C's `DISPATCH_TIME_FOREVER`.
  @inlinable
  public static var distantFuture: DispatchTime { DispatchTime(rawValue: .max) }

  /// Makes an instant from a count of nanoseconds of uptime.
  ///
  /// - Parameter uptimeNanoseconds: Nanoseconds on the uptime clock. 0 means "now", and a value
  ///   beyond `Int64.max` (292 years) is never reached.
  @inlinable
  public init(uptimeNanoseconds: UInt64) {
    self.init(rawValue: uptimeNanoseconds)
  }

  /// The instant as nanoseconds on the uptime clock; `UInt64.max` for the distant future.
  @inlinable
  public var uptimeNanoseconds: UInt64 { rawValue }

  /// Whether `a` comes before `b`; nothing comes after the distant future.
  ///
  /// An instant of 0 nanoseconds compares as 0, not as the moment of the comparison.
  @inlinable
  public static func < (a: DispatchTime, b: DispatchTime) -> Bool {
    a.rawValue < b.rawValue
  }

  /// Whether both are the same instant.
  @inlinable
  public static func == (a: DispatchTime, b: DispatchTime) -> Bool {
    a.rawValue == b.rawValue
  }

  /// The instant `n` after this one; the same as `self + n`.
  ///
  /// - Parameter n: The interval; negative ones lead back.
  /// - Returns: The sum, saturated as `+` saturates.
  public func advanced(by n: DispatchTimeInterval) -> DispatchTime {
    self + n
  }

  /// The interval from this instant to another, in nanoseconds; negative if `other` is earlier.
  ///
  /// An instant of 0 nanoseconds counts as 0. The way to the distant future is `.never`, the way
  /// back from it the most negative interval, and a difference that 64 bits cannot hold saturates.
  ///
  /// - Parameter other: The instant to measure to.
  public func distance(to other: DispatchTime) -> DispatchTimeInterval {
    if self == other { return .nanoseconds(0) }
    if other == .distantFuture { return .never }
    if self == .distantFuture { return .nanoseconds(.min) }
    if self < other {
      return .nanoseconds(Int(clamping: other.rawValue - rawValue))
    }
    return .nanoseconds(-Int(clamping: rawValue - other.rawValue))
  }
}
