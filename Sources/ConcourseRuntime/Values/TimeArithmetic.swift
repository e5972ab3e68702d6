// How instants move. One rule serves all operators: the distant future absorbs everything, a sum
// past the last instant is the distant future, a difference before the first instant is the first
// instant, and nothing traps. Subtracting is adding the opposite, so each clock has one function
// that moves an instant.
//
// The overloads that take Swift's Duration are disfavoured: `.seconds(1)` fits Duration too, and
// must go on meaning DispatchTimeInterval in code written for Apple's module.

extension DispatchTime {
  /// Moves the instant; 0 stands for the moment of the call.
  func advanced(byNanoseconds delta: Int64) -> DispatchTime {
    if self == .distantFuture { return self }
    let base = rawValue == 0 ? Clock.uptime() : rawValue
    // The first instant is 1, for 0 would mean "now".
    guard let sum = base.moved(by: delta, notBelow: 1) else { return .distantFuture }
    return DispatchTime(rawValue: sum)
  }
}

extension DispatchWallTime {
  /// Moves the instant; the earliest one stands for the moment of the call, as it does in C.
  func advanced(byNanoseconds delta: Int64) -> DispatchWallTime {
    if self == .distantFuture { return self }
    let base = self == .earliest ? Clock.wall() : nanosecondsSinceEpoch
    let first = DispatchWallTime.earliest.nanosecondsSinceEpoch
    guard let sum = base.moved(by: delta, notBelow: first) else { return .distantFuture }
    return DispatchWallTime(nanosecondsSinceEpoch: sum)
  }
}

extension UInt64 {
  /// The sum, at least `first`, or nil if it does not fit 63 bits: the top bit tells the clocks
  /// apart, so neither clock may count into it.
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
  /// The opposite, which for the least value is the greatest.
  fileprivate var saturatedOpposite: Int64 { self == .min ? .max : -self }

  /// Seconds as whole nanoseconds, saturated. NaN gives the greatest value: a deadline that makes
  /// no sense must not fire.
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
///   - interval: The interval; negative ones lead back.
/// - Returns: The sum. The distant future stays what it is; `never` and what is too far ahead give
///   the distant future; what lies before the first instant gives the first, 1 ns. Matches C's
///   `dispatch_time`.
public func + (time: DispatchTime, interval: DispatchTimeInterval) -> DispatchTime {
  time.advanced(byNanoseconds: interval.saturatedNanoseconds)
}

/// The instant `seconds` after `time`.
///
/// - Parameters:
///   - time: The instant to start from; 0 nanoseconds means now.
///   - seconds: The interval in seconds, cut to whole nanoseconds; negative ones lead back.
/// - Returns: The sum, saturated: NaN, infinity and what is too far ahead give the distant future,
///   what lies before the first instant gives the first, 1 ns.
public func + (time: DispatchTime, seconds: Double) -> DispatchTime {
  time.advanced(byNanoseconds: Int64(saturatingSeconds: seconds))
}

/// The instant `duration` after `time`.
///
/// - Parameters:
///   - time: The instant to start from; 0 nanoseconds means now.
///   - duration: The interval, cut to whole nanoseconds; negative ones lead back.
/// - Returns: The sum, saturated as for `DispatchTimeInterval`.
@_disfavoredOverload
public func + (time: DispatchTime, duration: Duration) -> DispatchTime {
  time + DispatchTimeInterval(duration)
}

/// The instant `interval` before `time`.
///
/// - Parameters:
///   - time: The instant to start from; 0 nanoseconds means now.
///   - interval: The interval; negative ones lead ahead, however large.
/// - Returns: The difference, saturated: what lies before the first instant, and so `never`, gives
///   the first, 1 ns; what is too far ahead gives the distant future, and so does every difference
///   from the distant future. Matches C's `dispatch_time` with a negative delta.
public func - (time: DispatchTime, interval: DispatchTimeInterval) -> DispatchTime {
  time.advanced(byNanoseconds: interval.saturatedNanoseconds.saturatedOpposite)
}

/// The instant `seconds` before `time`.
///
/// - Parameters:
///   - time: The instant to start from; 0 nanoseconds means now.
///   - seconds: The interval in seconds, cut to whole nanoseconds; negative ones lead ahead.
/// - Returns: The difference, saturated: infinity gives the first instant, 1 ns; NaN gives the
///   distant future.
public func - (time: DispatchTime, seconds: Double) -> DispatchTime {
  time + (-seconds)
}

/// The instant `duration` before `time`.
///
/// - Parameters:
///   - time: The instant to start from; 0 nanoseconds means now.
///   - duration: The interval, cut to whole nanoseconds; negative ones lead ahead.
/// - Returns: The difference, saturated as for `DispatchTimeInterval`.
@_disfavoredOverload
public func - (time: DispatchTime, duration: Duration) -> DispatchTime {
  time - DispatchTimeInterval(duration)
}

/// The instant `interval` after `time`, on the wall clock.
///
/// - Parameters:
///   - time: The instant to start from; the earliest instant means now.
///   - interval: The interval; negative ones lead back.
/// - Returns: The sum. The distant future stays what it is; `never` and what is too far ahead give
///   the distant future; what lies before the epoch gives the earliest instant. Matches C's
///   `dispatch_walltime` and `dispatch_time`.
public func + (time: DispatchWallTime, interval: DispatchTimeInterval) -> DispatchWallTime {
  time.advanced(byNanoseconds: interval.saturatedNanoseconds)
}

/// The instant `seconds` after `time`, on the wall clock.
///
/// - Parameters:
///   - time: The instant to start from; the earliest instant means now.
///   - seconds: The interval in seconds, cut to whole nanoseconds; negative ones lead back.
/// - Returns: The sum, saturated: NaN, infinity and what is too far ahead give the distant future,
///   what lies before the epoch gives the earliest instant.
public func + (time: DispatchWallTime, seconds: Double) -> DispatchWallTime {
  time.advanced(byNanoseconds: Int64(saturatingSeconds: seconds))
}

/// The instant `duration` after `time`, on the wall clock.
///
/// - Parameters:
///   - time: The instant to start from; the earliest instant means now.
///   - duration: The interval, cut to whole nanoseconds; negative ones lead back.
/// - Returns: The sum, saturated as for `DispatchTimeInterval`.
@_disfavoredOverload
public func + (time: DispatchWallTime, duration: Duration) -> DispatchWallTime {
  time + DispatchTimeInterval(duration)
}

/// The instant `interval` before `time`, on the wall clock.
///
/// - Parameters:
///   - time: The instant to start from; the earliest instant means now.
///   - interval: The interval; negative ones lead ahead, however large.
/// - Returns: The difference, saturated: what lies before the epoch, and so `never`, gives the
///   earliest instant; what is too far ahead gives the distant future, and so does every
///   difference from the distant future.
public func - (time: DispatchWallTime, interval: DispatchTimeInterval) -> DispatchWallTime {
  time.advanced(byNanoseconds: interval.saturatedNanoseconds.saturatedOpposite)
}

/// The instant `seconds` before `time`, on the wall clock.
///
/// - Parameters:
///   - time: The instant to start from; the earliest instant means now.
///   - seconds: The interval in seconds, cut to whole nanoseconds; negative ones lead ahead.
/// - Returns: The difference, saturated: infinity gives the earliest instant, NaN the distant
///   future.
public func - (time: DispatchWallTime, seconds: Double) -> DispatchWallTime {
  time + (-seconds)
}

/// The instant `duration` before `time`, on the wall clock.
///
/// - Parameters:
///   - time: The instant to start from; the earliest instant means now.
///   - duration: The interval, cut to whole nanoseconds; negative ones lead ahead.
/// - Returns: The difference, saturated as for `DispatchTimeInterval`.
@_disfavoredOverload
public func - (time: DispatchWallTime, duration: Duration) -> DispatchWallTime {
  time - DispatchTimeInterval(duration)
}
