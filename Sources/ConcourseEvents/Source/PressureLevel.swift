/// Decides the level of memory pressure from the kernel's stall notices and from readings of free memory. Pure.
///
/// A level that a notice has set lasts until notices have been absent for `holdTime`. A level that a reading has set
/// ends only when clearly more memory is left than when it began, so that it does not flap.
struct PressureLevel: Equatable {
  enum Level: Int, Comparable {
    case normal, warning, critical

    static func < (a: Level, b: Level) -> Bool { a.rawValue < b.rawValue }

    var event: DispatchSource.MemoryPressureEvent {
      switch self {
      case .normal: .normal
      case .warning: .warning
      case .critical: .critical
      }
    }
  }

  struct Reading: Equatable {
    /// The fraction of memory that can be used without swapping.
    var available: Double
    /// How often the kernel has reclaimed memory from the control group, since the group was made.
    var reclaims: UInt64 = 0
    /// How often the control group has run out of memory, since it was made.
    var shortages: UInt64 = 0
  }

  /// A level begins below its first fraction, and ends at its second.
  static let warningBegins = 0.10
  static let warningEnds = 0.15
  static let criticalBegins = 0.05
  static let criticalEnds = 0.08
  /// A level ends this long after its last notice, in nanoseconds.
  let holdTime: UInt64

  /// - Parameter holdTime: the default is somewhat more than two windows of the kernel's notices.
  init(holdTime: UInt64 = 5_000_000_000) { self.holdTime = holdTime }

  private(set) var level = Level.normal
  /// The times until which notices sustain the levels.
  private var warningUntil: UInt64 = 0
  private var criticalUntil: UInt64 = 0
  private var last: Reading?

  /// Takes a notice that tasks have stalled as long as `level` requires.
  /// - Returns: the level to report; nil if it has not changed.
  mutating func stalled(_ level: Level, at now: UInt64) -> Level? {
    sustain(level, at: now)
    // A notice of a lower level does not end a higher level: only time does.
    return level > self.level ? enter(level) : nil
  }

  /// Ends levels whose time is over.
  mutating func update(at now: UInt64) -> Level? { enter(sustainedLevel(at: now)) }

  /// Takes a reading, where there are no notices.
  mutating func read(_ reading: Reading, at now: UInt64) -> Level? {
    // Counts from before the first reading do not matter.
    if let last {
      if reading.shortages > last.shortages { sustain(.critical, at: now) }
      if reading.reclaims > last.reclaims { sustain(.warning, at: now) }
    }
    last = reading
    return enter(max(sustainedLevel(at: now), measuredLevel(reading.available)))
  }

  private mutating func sustain(_ level: Level, at now: UInt64) {
    let end = now &+ holdTime
    if level >= .warning { warningUntil = max(warningUntil, end) }
    if level == .critical { criticalUntil = max(criticalUntil, end) }
  }

  private func sustainedLevel(at now: UInt64) -> Level {
    now < criticalUntil ? .critical : now < warningUntil ? .warning : .normal
  }

  private func measuredLevel(_ available: Double) -> Level {
    let isCritical = available < (level == .critical ? Self.criticalEnds : Self.criticalBegins)
    if isCritical { return .critical }
    return available < (level >= .warning ? Self.warningEnds : Self.warningBegins) ? .warning : .normal
  }

  private mutating func enter(_ next: Level) -> Level? {
    guard next != level else { return nil }
    level = next
    return next
  }
}
