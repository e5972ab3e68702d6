/// How short memory is, and how that follows from what the system says. Pure.
///
/// Two kinds of witnesses: the kernel's notices that tasks have stalled for want of memory, and readings of
/// how much is left. With notices a level lasts until they have been missing for a while; with readings it
/// ends when clearly more is left than when it began, so that it does not flutter.
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

  /// A look at how much memory is left.
  struct Reading: Equatable {
    /// What could be used without swapping, as a part of all.
    var available: Double
    /// How often the control group was made to give memory back, ever.
    var reclaims: UInt64 = 0
    /// How often it ran out, ever.
    var shortages: UInt64 = 0
  }

  /// Below these parts a level begins; at these it has ended.
  static let warningBegins = 0.10
  static let warningEnds = 0.15
  static let criticalBegins = 0.05
  static let criticalEnds = 0.08
  /// So long after the last notice a level ends, in nanoseconds.
  let quiet: UInt64

  /// - Parameter quiet: by default two windows of the kernel's notices and some.
  init(quiet: UInt64 = 5_000_000_000) { self.quiet = quiet }

  private(set) var level = Level.normal
  /// Until when notices vouch for a level.
  private var warningLasts: UInt64 = 0
  private var criticalLasts: UInt64 = 0
  private var last: Reading?

  /// Tasks have stalled so much that `level` is due.
  /// - Returns: what to report, nil if nothing has changed.
  mutating func stalled(_ level: Level, at now: UInt64) -> Level? {
    vouch(for: level, at: now)
    // A lower level's notice does not end a higher one: its time does.
    return level > self.level ? enter(level) : nil
  }

  /// Time has passed, with whatever notices came.
  mutating func look(at now: UInt64) -> Level? { enter(vouchedFor(at: now)) }

  /// A reading, for want of notices.
  mutating func read(_ reading: Reading, at now: UInt64) -> Level? {
    // What happened before the first look is history.
    if let last {
      if reading.shortages > last.shortages { vouch(for: .critical, at: now) }
      if reading.reclaims > last.reclaims { vouch(for: .warning, at: now) }
    }
    last = reading
    return enter(max(vouchedFor(at: now), levelLeft(by: reading.available)))
  }

  private mutating func vouch(for level: Level, at now: UInt64) {
    let end = now &+ quiet
    if level >= .warning { warningLasts = max(warningLasts, end) }
    if level == .critical { criticalLasts = max(criticalLasts, end) }
  }

  private func vouchedFor(at now: UInt64) -> Level {
    now < criticalLasts ? .critical : now < warningLasts ? .warning : .normal
  }

  private func levelLeft(by available: Double) -> Level {
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
