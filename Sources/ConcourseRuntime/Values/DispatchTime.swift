public import Glibc

// An instant on the uptime clock. TimeArithmetic.swift moves instants; Deadline.swift decodes them for the engine.

/// An instant on the uptime clock, in nanoseconds. The clock stops while the machine sleeps.
///
/// An instant of 0 nanoseconds means "now": the call that receives it reads the clock. Matches C's `dispatch_time_t`
/// on the default clock.
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
  /// Costs one clock read without a system call. Matches C's `dispatch_time(DISPATCH_TIME_NOW, 0)`.
  public static func now() -> DispatchTime {
    DispatchTime(rawValue: Clock.uptime())
  }

  /// An instant that is never reached. Additions and subtractions leave it unchanged.
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
  /// - Parameter n: The interval; negative intervals go back in time.
  /// - Returns: The sum, saturated as `+` saturates.
  public func advanced(by n: DispatchTimeInterval) -> DispatchTime {
    self + n
  }

  /// The interval from this instant to another, in nanoseconds; negative if `other` is earlier.
  ///
  /// An instant of 0 nanoseconds counts as 0. The distance to the distant future is `.never`, the distance back from
  /// it the most negative interval. A difference beyond 64 bits saturates.
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

// An instant on the wall clock. The stored word is C's encoding: the negated count of nanoseconds since 1970. Its top
// bit distinguishes it from an uptime instant, and all ones remains free for the distant future. TimeArithmetic.swift
// moves instants.

/// An instant on the wall clock, in nanoseconds since 1970. It moves when the clock is set.
///
/// The range is from 2 ns after the epoch to the year 2262. Earlier instants become the first one, later instants the
/// distant future. The first instant also means "now", as C's `DISPATCH_WALLTIME_NOW` does.
@frozen
public struct DispatchWallTime: Comparable, Sendable {
  /// The instant in the C encoding: all ones is the distant future, any other value is the negated
  /// count of nanoseconds since 1970.
  public let rawValue: dispatch_time_t

  @inlinable
  init(rawValue: dispatch_time_t) {
    self.rawValue = rawValue
  }

  /// The earliest instant: 2 ns after the epoch, because 1 ns, negated, is the encoding of the distant future.
  static var earliest: DispatchWallTime { DispatchWallTime(rawValue: .max - 1) }

  /// Makes the instant `nanoseconds` after the epoch, saturated to the range of the encoding.
  init(nanosecondsSinceEpoch nanoseconds: UInt64) {
    if nanoseconds < 2 {
      self = .earliest
    } else if nanoseconds > UInt64(Int64.max) {
      self = .distantFuture
    } else {
      self.init(rawValue: 0 &- nanoseconds)
    }
  }

  /// Nanoseconds since the epoch. Meaningless for the distant future.
  var nanosecondsSinceEpoch: UInt64 { 0 &- rawValue }

  /// The instant of the call, on the wall clock (`CLOCK_REALTIME`).
  ///
  /// Matches C's `dispatch_walltime(NULL, 0)`.
  public static func now() -> DispatchWallTime {
    DispatchWallTime(nanosecondsSinceEpoch: Clock.wall())
  }

  /// An instant that is never reached. Additions and subtractions leave it unchanged.
  ///
  /// Matches C's `DISPATCH_TIME_FOREVER`.
  @inlinable
  public static var distantFuture: DispatchWallTime { DispatchWallTime(rawValue: .max) }

  /// Makes an instant from seconds and nanoseconds since 1970.
  ///
  /// Nothing traps: instants before the epoch become the earliest one, which is in the past, and instants beyond the
  /// year 2262 become the distant future. The nanoseconds may lie outside 0 to 999,999,999. Matches C's
  /// `dispatch_walltime`.
  ///
  /// - Parameter timespec: The instant as C's `timespec`.
  public init(timespec: timespec) {
    let (seconds, tooFar) = Int64(timespec.tv_sec).multipliedReportingOverflow(by: 1_000_000_000)
    let (sum, tooFarStill) = seconds.addingReportingOverflow(Int64(timespec.tv_nsec))
    if tooFar || tooFarStill {
      // The sum overflows only in the direction of the seconds.
      self = timespec.tv_sec > 0 ? .distantFuture : .earliest
    } else {
      self.init(nanosecondsSinceEpoch: UInt64(clamping: sum))
    }
  }

  /// Whether `a` comes before `b`; nothing comes after the distant future.
  @inlinable
  public static func < (a: DispatchWallTime, b: DispatchWallTime) -> Bool {
    // Undo the negation, then count from the earliest instant, 2 ns. The distant future, encoded as 1 ns, wraps below
    // zero and so becomes the greatest value.
    (0 &- a.rawValue) &- 2 < (0 &- b.rawValue) &- 2
  }

  /// Whether both are the same instant.
  @inlinable
  public static func == (a: DispatchWallTime, b: DispatchWallTime) -> Bool {
    a.rawValue == b.rawValue
  }
}

/// How a wait with a timeout ended.
@frozen
public enum DispatchTimeoutResult: Sendable {
  /// The awaited event happened. Matches 0 as the result of a C wait.
  case success

  /// The deadline passed first. The wait has no other effect. Matches a non-zero result of a C wait.
  case timedOut
}

// A span of time in one of four units. Its operations use its count of nanoseconds, saturated to 64 bits.

/// A span of time, possibly negative; `never` is longer than any other.
@frozen
public enum DispatchTimeInterval: Equatable, Sendable {
  /// A number of seconds.
  case seconds(Int)

  /// A number of milliseconds.
  case milliseconds(Int)

  /// A number of microseconds.
  case microseconds(Int)

  /// A number of nanoseconds.
  case nanoseconds(Int)

  /// No interval: a deadline this far away is the distant future, and a timer that repeats at this interval fires
  /// once.
  case never

  /// Makes an interval from Swift's own duration, in whole nanoseconds.
  ///
  /// - Parameter duration: The duration. Fractions of a nanosecond are dropped, and a length beyond 292 years
  ///   saturates.
  public init(_ duration: Duration) {
    let (seconds, attoseconds) = duration.components
    // Both components have the same sign, so the sum overflows only away from zero, and a saturated product stays out
    // of range.
    let whole = Self.saturated(seconds, times: 1_000_000_000)
    let (sum, overflow) = whole.addingReportingOverflow(attoseconds / 1_000_000_000)
    self = .nanoseconds(Int(overflow ? (seconds < 0 ? .min : .max) : sum))
  }

  /// Whether both are the same number of nanoseconds after saturation to 64 bits; `never` equals only itself.
  public static func == (lhs: DispatchTimeInterval, rhs: DispatchTimeInterval) -> Bool {
    switch (lhs, rhs) {
    case (.never, .never): true
    case (.never, _), (_, .never): false
    case (_, _): lhs.saturatedNanoseconds == rhs.saturatedNanoseconds
    }
  }

  /// The span in nanoseconds, saturated to 64 bits; the greatest value for `never`.
  package var saturatedNanoseconds: Int64 {
    switch self {
    case .seconds(let count): Self.saturated(Int64(count), times: 1_000_000_000)
    case .milliseconds(let count): Self.saturated(Int64(count), times: 1_000_000)
    case .microseconds(let count): Self.saturated(Int64(count), times: 1_000)
    case .nanoseconds(let count): Int64(count)
    case .never: .max
    }
  }

  private static func saturated(_ count: Int64, times unit: Int64) -> Int64 {
    let (product, overflow) = count.multipliedReportingOverflow(by: unit)
    guard overflow else { return product }
    return count < 0 ? .min : .max
  }
}
