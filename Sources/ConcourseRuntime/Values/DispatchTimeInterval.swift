// A span of time in one of four units. Everything else about it follows from one number, its count
// of nanoseconds, saturated.

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

  /// No interval at all: a deadline this far away is the distant future, and a timer that repeats
  /// at this interval fires once.
  case never

  /// Makes an interval from Swift's own duration, in whole nanoseconds.
  ///
  /// - Parameter duration: The duration. What is finer than a nanosecond is dropped, and a length
  ///   beyond 292 years saturates.
  public init(_ duration: Duration) {
    let (seconds, attoseconds) = duration.components
    // Both components have the same sign: the sum overflows only away from zero, and a saturated
    // product cannot come back into range.
    let whole = Self.saturated(seconds, times: 1_000_000_000)
    let (sum, overflow) = whole.addingReportingOverflow(attoseconds / 1_000_000_000)
    self = .nanoseconds(Int(overflow ? (seconds < 0 ? .min : .max) : sum))
  }

  /// Whether both denote the same number of nanoseconds once saturated to 64 bits; `never` equals
  /// only itself.
  public static func == (lhs: DispatchTimeInterval, rhs: DispatchTimeInterval) -> Bool {
    switch (lhs, rhs) {
    case (.never, .never): true
    case (.never, _), (_, .never): false
    case (_, _): lhs.saturatedNanoseconds == rhs.saturatedNanoseconds
    }
  }

  /// The span in nanoseconds, saturated to 64 bits; the greatest value for `never`.
  var saturatedNanoseconds: Int64 {
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
