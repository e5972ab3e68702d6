/// How much of the workers' time each level has had while entries of several levels wait, in proportion to its weight
/// (ROOTS.md). Of two levels that wait, the one that has paid less goes first.
///
/// The monitor is the only writer. ORDERING: relaxed throughout; hints about who goes first, on which no wake-up depends.
struct LevelShares: ~Copyable {
  /// What a nanosecond of a worker costs: 240 divided by the level's weight. ROOTS.md states the weights.
  static func price(of level: QoSLevel) -> Int64 {
    switch level {
    case .unspecified: 0
    case .userInteractive: 15
    case .userInitiated: 24
    case .default: 40
    case .utility: 80
    case .background: 120
    }
  }
  /// By how much a level that has not waited goes before lower ones: 53, 33, 20 and 10 ms of a worker from
  /// user-interactive to utility.
  static let lead: Int64 = 800_000_000
  /// The most that a level can have paid more than another that waits: the price of a second of background.
  static let reach: Int64 = 1_000_000_000 * 120
  /// Amounts beyond this are lowered. Without that, two levels that always compete would reach the largest number after
  /// five weeks on 64 processors.
  static let most: Int64 = 1 << 60

  private let competition = Atomic<Bool>(false)
  /// What each level has paid, indexed by `QoSLevel.rawValue`.
  private let paid: UnsafeMutablePointer<Atomic<Int64>>

  init() {
    paid = .allocate(capacity: 6)
    for level in 0..<6 { (paid + level).initialize(to: Atomic<Int64>(0)) }
  }

  deinit { paid.deallocate() }

  /// Whether levels compete: workers then take entries in the order of what the levels have paid.
  var levelsCompete: Bool {
    // ORDERING: relaxed; see above.
    @inline(__always) get { competition.load(ordering: .relaxed) }
  }

  /// Begins an account in which each level goes before the lower ones for a moment.
  func begin() {
    var amount: Int64 = 0
    for level in QoSLevel.served {
      set(level, to: amount)
      amount -= Self.lead
    }
    // ORDERING: relaxed; see above.
    competition.store(true, ordering: .relaxed)
  }

  func end() {
    // ORDERING: relaxed; see above.
    competition.store(false, ordering: .relaxed)
  }

  /// What a level has paid.
  subscript(level: QoSLevel) -> Int64 {
    // ORDERING: relaxed; see above.
    paid[Int(level.rawValue)].load(ordering: .relaxed)
  }

  private func set(_ level: QoSLevel, to amount: Int64) {
    // ORDERING: relaxed; see above.
    paid[Int(level.rawValue)].store(amount, ordering: .relaxed)
  }

  /// Charges a level for a worker's time.
  func charge(_ level: QoSLevel, nanoseconds: UInt64) {
    set(level, to: self[level] &+ Self.price(of: level) &* Int64(truncatingIfNeeded: nanoseconds))
  }

  /// Keeps the levels close to those that wait. A level that does not wait has no claim to the time before, but goes
  /// before lower ones for a moment.
  func bound(waiting: LevelSet) {
    for level in QoSLevel.served {
      let higher = least(of: waiting) { $0 > level }
      let lower = least(of: waiting) { $0 < level }
      guard let nearest = [higher, lower].compactMap({ $0 }).min() else { continue }
      var amount = self[level]
      if !waiting.contains(level) {
        if let higher { amount = max(amount, higher) }
        if let lower { amount = max(amount, lower - Self.lead) }
      }
      set(level, to: min(amount, nearest + Self.reach))
    }
    // All levels are close to one another now, so only the differences count.
    let least = QoSLevel.served.map { self[$0] }.min()!
    if least > Self.most { for level in QoSLevel.served { set(level, to: self[level] - least) } }
  }

  /// Whether a level has paid more than a higher one that waits.
  func isAhead(_ level: QoSLevel, waiting: LevelSet) -> Bool {
    guard let higher = least(of: waiting, where: { $0 > level }) else { return false }
    return higher < self[level]
  }

  private func least(of levels: LevelSet, where matches: (QoSLevel) -> Bool) -> Int64? {
    var least: Int64?
    for level in QoSLevel.served where levels.contains(level) && matches(level) {
      least = min(least ?? .max, self[level])
    }
    return least
  }
}

/// A set of levels.
struct LevelSet {
  private var bits: UInt8 = 0

  var count: Int { bits.nonzeroBitCount }
  func contains(_ level: QoSLevel) -> Bool { bits & 1 << level.rawValue != 0 }
  mutating func insert(_ level: QoSLevel) { bits |= 1 << level.rawValue }
}

extension QoSLevel {
  /// The levels that have a root queue, the least urgent first.
  static var served: some Sequence<QoSLevel> { (UInt8(1)...5).lazy.map { QoSLevel(rawValue: $0)! } }
}
