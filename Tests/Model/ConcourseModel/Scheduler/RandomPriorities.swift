/// Random schedules that find deep bugs with a known probability (Burckhardt and others, "A randomized scheduler with
/// probabilistic guarantees of finding bugs", 2010). Each coroutine has a random priority and the highest runs. At a
/// few random steps the running one drops below all others. At a few more a load may return an older store.
final class RandomPriorities: SchedulePolicy {
  private var random: SplitMix
  private var priorities: [Int: UInt64] = [:]
  private var drops: Set<Int> = []
  private var lowest = UInt64(1) << 32
  /// The steps from which on the next operation that can use an older store does, the first last.
  private var staleAfter: [Int] = []

  /// - Parameters:
  ///   - drops: How often the running coroutine drops.
  ///   - stale: How often an operation uses another store than the newest.
  ///   - length: The approximate number of decisions in one execution.
  init(seed: UInt64, drops: Int, stale: Int, length: Int) {
    random = SplitMix(state: seed)
    for _ in 0..<drops { self.drops.insert(Int(random.next() % UInt64(max(length, 1)))) }
    for _ in 0..<stale { staleAfter.append(Int(random.next() % UInt64(max(length, 1)))) }
    staleAfter.sort(by: >)
  }

  func wantsChoice(continuing: Bool) -> Bool { true }

  func choose(_ options: [Int], continuing: Bool, at decision: Int, state: () -> UInt64) -> Int? {
    if drops.contains(decision) {
      lowest -= 1
      priorities[options[0]] = lowest
    }
    return options.indices.max { priority(options[$0]) < priority(options[$1]) }
  }

  func wantsStore(at step: Int) -> Bool { staleAfter.last.map { $0 <= step } ?? false }

  func chooseStore(among count: Int, of coroutine: Int, at step: Int, state: () -> UInt64) -> Int? {
    staleAfter.removeLast()
    return 1 + Int(random.next() % UInt64(count - 1))
  }

  private func priority(_ id: Int) -> UInt64 {
    if let known = priorities[id] { return known }
    let priority = random.next() | UInt64(1) << 63
    priorities[id] = priority
    return priority
  }
}

/// A small generator whose state is its seed.
struct SplitMix: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    return History.mix(state, 0)
  }
}
