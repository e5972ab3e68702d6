// An instant on the wall clock. The stored word is the negated count of nanoseconds since 1970, so
// its top bit tells a wall-clock instant from an uptime instant; that is C's encoding, and all ones
// stays free for the distant future. How instants move is in TimeArithmetic.swift.

public import Glibc

/// An instant on the wall clock, in nanoseconds since 1970; it moves when the clock is set.
///
/// Instants reach from 2 ns after the epoch to the year 2262: earlier ones become the first, later
/// ones the distant future. The first also reads as "now" where C's `DISPATCH_WALLTIME_NOW` does.
@frozen
public struct DispatchWallTime: Comparable, Sendable {
  /// The instant in the C encoding: all ones is the distant future, any other value is the negated
  /// count of nanoseconds since 1970.
  public let rawValue: dispatch_time_t

  @inlinable
  init(rawValue: dispatch_time_t) {
    self.rawValue = rawValue
  }

  /// The earliest instant: 2 ns after the epoch, because 1 ns negated is all ones, the distant
  /// future.
  static var earliest: DispatchWallTime { DispatchWallTime(rawValue: .max - 1) }

  /// Makes the instant `nanoseconds` after the epoch, saturated to what the encoding can hold.
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

  /// An instant that never comes and that no addition or subtraction moves.
  ///
  /// Matches C's `DISPATCH_TIME_FOREVER`.
  @inlinable
  public static var distantFuture: DispatchWallTime { DispatchWallTime(rawValue: .max) }

  /// Makes an instant from seconds and nanoseconds since 1970.
  ///
  /// Nothing traps: instants before the epoch become the earliest one, a past instant like any
  /// other, and instants beyond the year 2262 become the distant future. The nanoseconds need not
  /// lie between 0 and 999,999,999. Matches C's `dispatch_walltime`.
  ///
  /// - Parameter timespec: The instant as C's `timespec`.
  public init(timespec: timespec) {
    let (seconds, tooFar) = Int64(timespec.tv_sec).multipliedReportingOverflow(by: 1_000_000_000)
    let (sum, tooFarStill) = seconds.addingReportingOverflow(Int64(timespec.tv_nsec))
    if tooFar || tooFarStill {
      // The sum overflows only in the direction in which the seconds lead.
      self = timespec.tv_sec > 0 ? .distantFuture : .earliest
    } else {
      self.init(nanosecondsSinceEpoch: UInt64(clamping: sum))
    }
  }

  /// Whether `a` comes before `b`; nothing comes after the distant future.
  @inlinable
  public static func < (a: DispatchWallTime, b: DispatchWallTime) -> Bool {
    // Undo the negation, then count from the earliest instant, 2 ns. The distant future, 1 ns by
    // its encoding, falls below zero, wraps round and so becomes the greatest.
    (0 &- a.rawValue) &- 2 < (0 &- b.rawValue) &- 2
  }

  /// Whether both are the same instant.
  @inlinable
  public static func == (a: DispatchWallTime, b: DispatchWallTime) -> Bool {
    a.rawValue == b.rawValue
  }
}
