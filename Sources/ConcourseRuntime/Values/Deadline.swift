// The engine's form of an instant. The public types keep the C encoding; the rest of the engine uses
// deadlines.

/// When a wait ends or a timer fires.
package enum Deadline: Sendable, Equatable {
  /// At once: poll, or submit without a timer.
  case immediate

  /// At an absolute reading of the uptime clock, in nanoseconds.
  case uptime(UInt64)

  /// At an absolute reading of the wall clock, in nanoseconds since 1970.
  case wall(UInt64)

  /// No deadline.
  case never

  /// The instant `interval` nanoseconds from now, or this one if it is on the same clock, and earlier.
  func earlier(in interval: UInt64) -> Deadline {
    let other = Clock.uptime() &+ interval
    return switch self {
    case .immediate: .immediate
    case .uptime(let time): .uptime(min(time, other))
    case .wall, .never: .uptime(other)
    }
  }

  var hasPassed: Bool {
    switch self {
    case .immediate: true
    case .uptime(let time): Clock.uptime() >= time
    case .wall(let time): Clock.wall() >= time
    case .never: false
    }
  }

  /// Decodes an uptime instant: 0 is immediate, and a value beyond 63 bits (292 years) is never.
  package init(_ time: DispatchTime) {
    if time.rawValue == 0 {
      self = .immediate
    } else if time.rawValue > UInt64(Int64.max) {
      self = .never
    } else {
      self = .uptime(time.rawValue)
    }
  }

  /// Decodes a wall-clock instant: the earliest one, which C also calls "now", is immediate.
  package init(_ time: DispatchWallTime) {
    if time == .distantFuture {
      self = .never
    } else if time == .earliest {
      self = .immediate
    } else {
      self = .wall(time.nanosecondsSinceEpoch)
    }
  }
}

// The C encoding of an instant is one word for all clocks: 0 is now, all ones is never. Otherwise the two highest
// bits name the clock:
// - 00 or 01: nanoseconds of uptime.
// - 11: the negated nanoseconds since 1970. The earliest instant also means "now".
// - 10: nanoseconds since boot, including sleep. Setting the deadline converts it to an uptime, so it comes late by the
//   time that the machine sleeps before it.

extension Deadline {
  /// Decodes an instant in the C encoding.
  package init(encoded time: UInt64) {
    switch EncodedTime(time) {
    case .never: self = .never
    case .uptime(let nanoseconds): self = nanoseconds == 0 ? .immediate : .uptime(nanoseconds)
    case .wall(let nanoseconds): self = nanoseconds <= 2 ? .immediate : .wall(nanoseconds)
    case .sinceStart(let nanoseconds):
      let now = Clock.sinceStart()
      self =
        nanoseconds <= now ? .immediate : .uptime(Clock.uptime().addingSaturated(nanoseconds - now))
    }
  }
}

package enum EncodedTime {
  case never
  case uptime(UInt64)
  case wall(UInt64)
  case sinceStart(UInt64)

  private static let startClock: UInt64 = 1 << 63

  package init(_ word: UInt64) {
    if word == .max {
      self = .never
    } else if word >> 63 == 0 {
      self = .uptime(word)
    } else if word >> 62 == 0b11 {
      self = .wall(0 &- word)
    } else {
      self = .sinceStart(word & ~Self.startClock)
    }
  }

  /// Encodes an uptime. nil, and a time beyond the clock's range, give never; a time below `least` gives `least`.
  private static func word(uptime: UInt64?, least: UInt64 = 1) -> UInt64 {
    guard let uptime, uptime <= UInt64(Int64.max) else { return .max }
    return max(uptime, least)
  }

  private static func word(wall: UInt64?) -> UInt64 {
    guard let wall, wall <= 1 << 62 else { return .max }
    return 0 &- max(wall, 2)
  }

  private static func word(sinceStart: UInt64?) -> UInt64 {
    guard let sinceStart, sinceStart < 1 << 62 else { return .max }
    return startClock | max(sinceStart, 1)
  }

  /// The instant `delta` nanoseconds after `word`, on its clock. Matching C function: `dispatch_time`.
  package static func adding(_ delta: Int64, to word: UInt64) -> UInt64 {
    switch EncodedTime(word) {
    case .never: .max
    case .uptime(let time): Self.word(uptime: moved(time == 0 ? Clock.uptime() : time, by: delta))
    case .wall(let time): Self.word(wall: moved(time <= 2 ? Clock.wall() : time, by: delta))
    case .sinceStart(let time):
      Self.word(sinceStart: moved(time == 0 ? Clock.sinceStart() : time, by: delta))
    }
  }

  /// The instant `delta` nanoseconds after `when`, a wall-clock time; nil means now.
  /// Matching C function: `dispatch_walltime`.
  package static func wall(_ when: (seconds: Int, nanoseconds: Int)?, adding delta: Int64) -> UInt64 {
    guard let when else { return word(wall: moved(Clock.wall(), by: delta)) }
    let (seconds, tooFar) = when.seconds.multipliedReportingOverflow(by: 1_000_000_000)
    let (time, tooFarStill) = seconds.addingReportingOverflow(when.nanoseconds)
    if tooFar || tooFarStill { return when.seconds > 0 ? .max : word(wall: 0) }
    let (sum, overflow) = time.addingReportingOverflow(Int(delta))
    if overflow { return delta > 0 ? .max : word(wall: 0) }
    return word(wall: sum < 0 ? 0 : UInt64(sum))
  }

  /// `time + delta`, at least 0; nil on overflow.
  private static func moved(_ time: UInt64, by delta: Int64) -> UInt64? {
    if delta >= 0 {
      let (sum, overflow) = time.addingReportingOverflow(UInt64(delta))
      return overflow ? nil : sum
    }
    let (difference, overflow) = time.subtractingReportingOverflow(delta.magnitude)
    return overflow ? 0 : difference
  }
}

extension UInt64 {
  fileprivate func addingSaturated(_ other: UInt64) -> UInt64 {
    let (sum, overflow) = addingReportingOverflow(other)
    return overflow ? .max : sum
  }
}
