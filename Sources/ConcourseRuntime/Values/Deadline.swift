// What the engine makes of an instant. The public types keep C's encoding; behind this line nobody
// looks at the encoding again.

/// When a wait ends or a timer fires.
package enum Deadline: Sendable, Equatable {
  /// At once: poll, or submit without a timer.
  case immediate

  /// At an absolute reading of the uptime clock, in nanoseconds.
  case uptime(UInt64)

  /// At an absolute reading of the wall clock, in nanoseconds since 1970.
  case wall(UInt64)

  /// Not at all.
  case never

  /// Reads an uptime instant: 0 is immediate, and what does not fit 63 bits (292 years) is never.
  init(_ time: DispatchTime) {
    if time.rawValue == 0 {
      self = .immediate
    } else if time.rawValue > UInt64(Int64.max) {
      self = .never
    } else {
      self = .uptime(time.rawValue)
    }
  }

  /// Reads a wall-clock instant: the earliest, which C also calls "now", is immediate.
  init(_ time: DispatchWallTime) {
    if time == .distantFuture {
      self = .never
    } else if time == .earliest {
      self = .immediate
    } else {
      self = .wall(time.nanosecondsSinceEpoch)
    }
  }
}
