/// Random schedules that find deep bugs with a known probability (Burckhardt and others, "A randomized scheduler with
/// probabilistic guarantees of finding bugs", 2010). Each coroutine has a random priority and the highest runs. At a
/// few random steps the running one drops below all others.
final class RandomPriorities: SchedulePolicy {
  private var random: SplitMix
  private var priorities: [Int: UInt64] = [:]
  private var drops: Set<Int> = []
  private var lowest = UInt64(1) << 32

  /// - Parameters:
  ///   - drops: How often the running coroutine drops.
  ///   - length: The approximate number of decisions in one execution.
  init(seed: UInt64, drops: Int, length: Int) {
    random = SplitMix(state: seed)
    for _ in 0..<drops { self.drops.insert(Int(random.next() % UInt64(max(length, 1)))) }
  }

  func wantsChoice(continuing: Bool) -> Bool { true }

  func choose(_ options: [Int], continuing: Bool, at decision: Int, state: () -> UInt64) -> Int? {
    if drops.contains(decision) {
      lowest -= 1
      priorities[options[0]] = lowest
    }
    return options.indices.max { priority(options[$0]) < priority(options[$1]) }
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
