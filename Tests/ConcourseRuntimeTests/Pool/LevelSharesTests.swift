import Testing

@testable import ConcourseRuntime

@Suite("Shares of levels")
struct LevelSharesTests {
  private static var every: [QoSLevel] {
    [.userInteractive, .userInitiated, .default, .utility, .background]
  }

  /// Shares that can be copied, as expectations need.
  private final class Account {
    private let shares = LevelShares()
    init() { shares.begin() }
    var levelsCompete: Bool { shares.levelsCompete }
    subscript(level: QoSLevel) -> Int64 { shares[level] }
    func end() { shares.end() }
    func charge(_ level: QoSLevel, nanoseconds: UInt64) { shares.charge(level, nanoseconds: nanoseconds) }
    func bound(waiting: LevelSet) { shares.bound(waiting: waiting) }
    func isAhead(_ level: QoSLevel, waiting: LevelSet) -> Bool { shares.isAhead(level, waiting: waiting) }
  }

  private static func set(_ levels: [QoSLevel]) -> LevelSet {
    var set = LevelSet()
    for level in levels { set.insert(level) }
    return set
  }

  /// Gives the level that has paid least, the most urgent of several, a worker for a time.
  private static func next(_ shares: Account, of levels: [QoSLevel], nanoseconds: UInt64)
    -> QoSLevel
  {
    var next = levels[0]
    for level in levels where shares[level] < shares[next] { next = level }
    shares.charge(next, nanoseconds: nanoseconds)
    shares.bound(waiting: set(levels))
    return next
  }

  @Test("amounts stay small enough to add, however long levels compete")
  func longCompetition() {
    let shares = Account()
    for _ in 0..<100 {
      for level in [QoSLevel.default, .utility] {
        shares.charge(level, nanoseconds: UInt64(LevelShares.most / LevelShares.price(of: level)))
      }
      shares.bound(waiting: Self.set([.default, .utility]))
      #expect(Self.every.allSatisfy { (-LevelShares.most...3 * LevelShares.most).contains(shares[$0]) })
    }
  }

  @Test(
    "S51 levels that wait share the workers by weight; none is ever behind a lower one",
    arguments: [10_000_000, 50_000_000])
  func weights(_ nanoseconds: UInt64) {
    for count in 2...5 {
      for skipped in 0...(5 - count) {
        let levels = Array(Self.every[skipped..<(skipped + count)])
        let shares = Account()
        #expect(shares.levelsCompete)
        var (entries, inversions) = ([QoSLevel: Int](), 0)
        for _ in 0..<2_000 {
          entries[Self.next(shares, of: levels, nanoseconds: nanoseconds), default: 0] += 1
          for (higher, lower) in zip(levels, levels.dropFirst())
          where entries[higher, default: 0] < entries[lower, default: 0] {
            inversions += 1
          }
        }
        #expect(inversions == 0, "\(levels): \(entries)")
        let costs = levels.map { Double(entries[$0, default: 0]) * Double(LevelShares.price(of: $0)) }
        #expect(costs.max()! < 1.2 * costs.min()!, "\(levels): \(entries)")
        #expect(Double(entries[levels.last!]!) > 0.03 * 2_000, "\(levels): \(entries)")
      }
    }
  }

  @Test("S51 a level that has not waited goes before lower ones for a moment, and then has its share")
  func newcomer() {
    for level in [QoSLevel.userInteractive, .userInitiated] {
      let shares = Account()
      for _ in 0..<1_000 { _ = Self.next(shares, of: [.default, .utility], nanoseconds: 10_000_000) }
      #expect(shares[level] < shares[.default] && !shares.isAhead(level, waiting: Self.set([.default])))
      let first = (0..<3).map { _ in Self.next(shares, of: [level, .default], nanoseconds: 10_000_000) }
      #expect(first == [level, level, level])
      var own = 0
      for _ in 0..<1_100 where Self.next(shares, of: [level, .default], nanoseconds: 10_000_000) == level {
        own += 1
      }
      let share = Double(LevelShares.price(of: .default)) / Double(LevelShares.price(of: level))
      #expect(abs(Double(own) / Double(1_100 - own) - share) < 0.1 * share, "\(level): \(own)")
    }
  }

  @Test("S51 a lower level has no claim to the time in which it did not wait")
  func latecomer() {
    let shares = Account()
    for _ in 0..<1_000 { _ = Self.next(shares, of: [.userInitiated, .default], nanoseconds: 10_000_000) }
    let waiting = Self.set([.userInitiated, .default, .background])
    #expect(shares[.background] >= min(shares[.userInitiated], shares[.default]))
    shares.charge(.background, nanoseconds: 10_000_000)
    #expect(shares.isAhead(.background, waiting: waiting))
  }

  @Test("S51 a level that had all processors waits a second at most for the others to catch up")
  func reach() {
    let shares = Account()
    shares.charge(.background, nanoseconds: 3_600_000_000_000)
    let waiting = Self.set([.default, .background])
    shares.bound(waiting: waiting)
    #expect(
      shares.isAhead(.background, waiting: waiting) && !shares.isAhead(.background, waiting: LevelSet()))
    shares.charge(.default, nanoseconds: UInt64(LevelShares.reach / LevelShares.price(of: .default)))
    #expect(!shares.isAhead(.background, waiting: waiting))
    shares.end()
    #expect(!shares.levelsCompete)
  }

  /// Classes whose items spin for this many microseconds; all of them wait from the beginning.
  struct Flood: Codable, Sendable, CustomTestStringConvertible {
    let classes: [Int]
    var microseconds: UInt64 = 4_000
    var processor = false
    var testDescription: String { "\(classes), \(microseconds) µs\(processor ? ", one processor" : "")" }
  }

  @Test(
    "S51 while items of several classes wait, no class gets ahead of a higher one, and each progresses",
    .serialized,
    arguments: [
      Flood(classes: [4, 3, 2, 1]), Flood(classes: [5, 4, 3, 2, 1]), Flood(classes: [3, 2, 1]),
      Flood(classes: [2, 1]), Flood(classes: [5, 3, 1], microseconds: 10_000),
      Flood(classes: [4, 3, 2, 1], processor: true),
    ])
  func fullClasses(_ flood: Flood) async {
    await #expect(processExitsWith: .success) { [flood] in
      if flood.processor { useOneProcessor() }
      // On a busy machine the monitor may miss its processor for longer than a class needs to get ahead. Without shares, the
      // classes of the lowered bands are far ahead each time.
      var results: [[Int]] = []
      while results.count < 4 {
        let ran = Self.ran(flood)
        results.append(ran)
        if zip(ran, ran.dropFirst()).allSatisfy({ $0 + PoolSize.width >= $1 }) { return }
      }
      preconditionFailure("\(results)")
    }
  }

  /// How many items of each class have run when the highest class has run fifty, and the lowest one.
  ///
  /// On a busy machine the kernel may keep background's thread from its processor for longer than the fifty take.
  private static func ran(_ flood: Flood) -> [Int] {
    let items = 50
    let ran = (0...5).map { _ in Tally() }
    let result = Shared<[Int]>([])
    let group = DispatchGroup()
    // Every item submits its successor.
    @Sendable func submit(_ level: Int) {
      DispatchQueue.global(qos: QoSLevel(rawValue: UInt8(level))!.qosClass).async(group: group) {
        guard result.value.isEmpty || ran[flood.classes.last!].value == 0 else { return }
        let end = Clock.uptime() + 1_000 * flood.microseconds
        while Clock.uptime() < end {}
        if ran[level].add() == items && level == flood.classes[0] {
          result.change { $0 = flood.classes.map { ran[$0].value } }
        }
        submit(level)
      }
    }
    for _ in 0..<items { for level in flood.classes { submit(level) } }
    precondition(empties(group), "\(ran.map(\.value))")
    return result.value
  }

  @Test("S51 a lowered worker that waits for its processor costs its class nothing before it begins an item")
  func newWorker() async {
    await #expect(processExitsWith: .success) {
      // A worker of background that never gets its processor, and on which submitters rely.
      let band = Runtime.shared.bands.last!
      precondition(band.level == .background)
      let worker = band.takeRecord()
      band.counters.apply(.init(active: 1, searching: 1, threads: 1))
      DispatchQueue.global(qos: .background).async {}
      let ran = Tally()
      @Sendable func submit(_ qosClass: DispatchQoS.QoSClass) {
        DispatchQueue.global(qos: qosClass).async {
          let end = Clock.uptime() + 1_000_000
          while Clock.uptime() < end {}
          ran.add()
          submit(qosClass)
        }
      }
      for _ in 0..<8 { for qosClass in [DispatchQoS.QoSClass.default, .userInitiated] { submit(qosClass) } }
      // A look that charges comes after each tick.
      @Sendable func paid(_ level: QoSLevel) -> Int64 { Runtime.shared.monitor.shares[level] }
      precondition(awaitValue { paid(.default) > 0 })
      let paidByBackground = paid(.background)
      // That was after some fifty looks. If this thread did not get its processor, the monitor may have made a hundred, and
      // given the worker up for another one.
      // ORDERING: relaxed; after the amount, which the monitor writes before it gives the worker up.
      let isActive = WorkerRecord.Status.isActive(worker.pointee.status.load(ordering: .relaxed))
      precondition(paidByBackground <= 0 || !isActive, "\(paidByBackground)")
    }
  }
}
