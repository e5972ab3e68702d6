// Arithmetic on instants. One rule covers all operators: the distant future never changes, a sum past the last instant
// is the distant future, a difference before the first instant is the first instant, and nothing traps. Subtraction
// adds the negated interval, so each clock has one function that moves an instant.
//
// The overloads that take Swift's Duration are disfavoured: `.seconds(1)` is a Duration too, and has to remain a
// DispatchTimeInterval in code written for Apple's module.

extension DispatchTime {
  /// Moves the instant; 0 means now.
  func advanced(byNanoseconds delta: Int64) -> DispatchTime {
    if self == .distantFuture { return self }
    let base = rawValue == 0 ? Clock.uptime() : rawValue
    // The first instant is 1, since 0 means "now".
    guard let sum = base.moved(by: delta, notBelow: 1) else { return .distantFuture }
    return DispatchTime(rawValue: sum)
  }
}

extension DispatchWallTime {
  /// Moves the instant; the earliest one means now, as it does in C.
  func advanced(byNanoseconds delta: Int64) -> DispatchWallTime {
    if self == .distantFuture { return self }
    let base = self == .earliest ? Clock.wall() : nanosecondsSinceEpoch
    let first = DispatchWallTime.earliest.nanosecondsSinceEpoch
    guard let sum = base.moved(by: delta, notBelow: first) else { return .distantFuture }
    return DispatchWallTime(nanosecondsSinceEpoch: sum)
  }
}

extension UInt64 {
  /// The sum, at least `first`; nil if it exceeds 63 bits, since the top bit distinguishes the clocks.
  fileprivate func moved(by delta: Int64, notBelow first: UInt64) -> UInt64? {
    if delta < 0 {
      return self > first && self - first > delta.magnitude ? checked(self - delta.magnitude) : first
    }
    let (sum, overflow) = addingReportingOverflow(UInt64(delta))
    return overflow ? nil : checked(sum)
  }

  private func checked(_ sum: UInt64) -> UInt64? {
    sum > UInt64(Int64.max) ? nil : sum
  }
}

extension Int64 {
  /// The negated value; the greatest value for the least one.
  fileprivate var saturatedNegation: Int64 { self == .min ? .max : -self }

  /// Seconds as whole nanoseconds, saturated. NaN gives the greatest value: an invalid deadline must not fire.
  fileprivate init(saturatingSeconds seconds: Double) {
    let nanoseconds = seconds * 1_000_000_000
    if let exact = Int64(exactly: nanoseconds.rounded(.towardZero)) {
      self = exact
    } else {
      self = nanoseconds < 0 ? .min : .max
    }
  }
}

/// The instant `interval` after `time`.
///
/// - Parameters:
///   - time: The instant to start from; 0 nanoseconds means now.
///   - interval: The interval; negative intervals go back in time.
/// - Returns: The sum. The distant future is unchanged; `never`, and a sum beyond the last instant, give the distant
///   future; a sum before the first instant gives the first, 1 ns. Matches C's `dispatch_time`.
public func + (time: DispatchTime, interval: DispatchTimeInterval) -> DispatchTime {
  time.advanced(byNanoseconds: interval.saturatedNanoseconds)
}

/// The instant `seconds` after `time`.
///
/// - Parameters:
///   - time: The instant to start from; 0 nanoseconds means now.
///   - seconds: The interval in seconds, truncated to whole nanoseconds; may be negative.
/// - Returns: The sum, saturated: NaN, infinity and a sum beyond the last instant give the distant future; a sum before
///   the first instant gives the first, 1 ns.
public func + (time: DispatchTime, seconds: Double) -> DispatchTime {
  time.advanced(byNanoseconds: Int64(saturatingSeconds: seconds))
}

/// The instant `duration` after `time`.
///
/// - Parameters:
///   - time: The instant to start from; 0 nanoseconds means now.
///   - duration: The interval, truncated to whole nanoseconds; may be negative.
/// - Returns: The sum, saturated as for `DispatchTimeInterval`.
@_disfavoredOverload
public func + (time: DispatchTime, duration: Duration) -> DispatchTime {
  time + DispatchTimeInterval(duration)
}

/// The instant `interval` before `time`.
///
/// - Parameters:
///   - time: The instant to start from; 0 nanoseconds means now.
///   - interval: The interval; negative intervals, of any size, go forward in time.
/// - Returns: The difference, saturated: a result before the first instant, such as that of `never`, gives the first,
///   1 ns; a result beyond the last instant gives the distant future. The distant future is unchanged. Matches C's
///   `dispatch_time` with a negative delta.
public func - (time: DispatchTime, interval: DispatchTimeInterval) -> DispatchTime {
  time.advanced(byNanoseconds: interval.saturatedNanoseconds.saturatedNegation)
}

/// The instant `seconds` before `time`.
///
/// - Parameters:
///   - time: The instant to start from; 0 nanoseconds means now.
///   - seconds: The interval in seconds, truncated to whole nanoseconds; may be negative.
/// - Returns: The difference, saturated: infinity gives the first instant, 1 ns; NaN gives the distant future.
public func - (time: DispatchTime, seconds: Double) -> DispatchTime {
  time + (-seconds)
}

/// The instant `duration` before `time`.
///
/// - Parameters:
///   - time: The instant to start from; 0 nanoseconds means now.
///   - duration: The interval, truncated to whole nanoseconds; may be negative.
/// - Returns: The difference, saturated as for `DispatchTimeInterval`.
@_disfavoredOverload
public func - (time: DispatchTime, duration: Duration) -> DispatchTime {
  time - DispatchTimeInterval(duration)
}

/// The instant `interval` after `time`, on the wall clock.
///
/// - Parameters:
///   - time: The instant to start from; the earliest instant means now.
///   - interval: The interval; negative intervals go back in time.
/// - Returns: The sum. The distant future is unchanged; `never`, and a sum beyond the last instant, give the distant
///   future; a sum before the epoch gives the earliest instant. Matches C's `dispatch_walltime` and `dispatch_time`.
public func + (time: DispatchWallTime, interval: DispatchTimeInterval) -> DispatchWallTime {
  time.advanced(byNanoseconds: interval.saturatedNanoseconds)
}

/// The instant `seconds` after `time`, on the wall clock.
///
/// - Parameters:
///   - time: The instant to start from; the earliest instant means now.
///   - seconds: The interval in seconds, truncated to whole nanoseconds; may be negative.
/// - Returns: The sum, saturated: NaN, infinity and a sum beyond the last instant give the distant future; a sum before
///   the epoch gives the earliest instant.
public func + (time: DispatchWallTime, seconds: Double) -> DispatchWallTime {
  time.advanced(byNanoseconds: Int64(saturatingSeconds: seconds))
}

/// The instant `duration` after `time`, on the wall clock.
///
/// - Parameters:
///   - time: The instant to start from; the earliest instant means now.
///   - duration: The interval, truncated to whole nanoseconds; may be negative.
/// - Returns: The sum, saturated as for `DispatchTimeInterval`.
@_disfavoredOverload
public func + (time: DispatchWallTime, duration: Duration) -> DispatchWallTime {
  time + DispatchTimeInterval(duration)
}

/// The instant `interval` before `time`, on the wall clock.
///
/// - Parameters:
///   - time: The instant to start from; the earliest instant means now.
///   - interval: The interval; negative intervals, of any size, go forward in time.
/// - Returns: The difference, saturated: a result before the epoch, such as that of `never`, gives the earliest
///   instant; a result beyond the last instant gives the distant future. The distant future is unchanged.
public func - (time: DispatchWallTime, interval: DispatchTimeInterval) -> DispatchWallTime {
  time.advanced(byNanoseconds: interval.saturatedNanoseconds.saturatedNegation)
}

/// The instant `seconds` before `time`, on the wall clock.
///
/// - Parameters:
///   - time: The instant to start from; the earliest instant means now.
///   - seconds: The interval in seconds, truncated to whole nanoseconds; may be negative.
/// - Returns: The difference, saturated: infinity gives the earliest instant, NaN the distant future.
public func - (time: DispatchWallTime, seconds: Double) -> DispatchWallTime {
  time + (-seconds)
}

/// The instant `duration` before `time`, on the wall clock.
///
/// - Parameters:
///   - time: The instant to start from; the earliest instant means now.
///   - duration: The interval, truncated to whole nanoseconds; may be negative.
/// - Returns: The difference, saturated as for `DispatchTimeInterval`.
@_disfavoredOverload
public func - (time: DispatchWallTime, duration: Duration) -> DispatchWallTime {
  time - DispatchTimeInterval(duration)
}
