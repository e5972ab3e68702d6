/// How many durations there were of each size, in bounded memory: 32 classes for each power of two, so a percentile is
/// off by 2 % at most.
package struct DurationHistogram: Equatable {
  package private(set) var count = 0
  package private(set) var longest: UInt64 = 0
  package private(set) var sum: UInt64 = 0
  private var shortest = UInt64.max
  private var counts: [UInt32] = []

  private static let classBits: UInt64 = 5

  package init() {}

  package mutating func add(_ duration: UInt64) {
    let index = Self.index(of: duration)
    if index >= counts.count { counts += [UInt32](repeating: 0, count: index + 1 - counts.count) }
    counts[index] &+= 1
    count += 1
    sum &+= duration
    longest = max(longest, duration)
    shortest = min(shortest, duration)
  }

  /// The duration that this share of all does not exceed; nil if there are none, or the share is no number.
  package func percentile(_ share: Double) -> UInt64? {
    guard count > 0, !share.isNaN else { return nil }
    if share >= 1 { return longest }
    let rank = max(1, Int((max(share, 0) * Double(count)).rounded(.up)))
    if rank >= count { return longest }
    var seen = 0
    for index in counts.indices {
      seen += Int(counts[index])
      if seen >= rank { return min(max(Self.middle(of: index), shortest), longest) }
    }
    return longest
  }

  package var median: UInt64? { percentile(0.5) }
  package var mean: UInt64? { count == 0 ? nil : sum / UInt64(count) }

  /// The number of durations in each range that ends at one of the limits, and beyond the last.
  package func counts(upTo limits: [UInt64]) -> [Int] {
    var result = [Int](repeating: 0, count: limits.count + 1)
    for (index, number) in counts.enumerated() where number > 0 {
      let middle = Self.middle(of: index)
      result[limits.firstIndex { middle <= $0 } ?? limits.count] += Int(number)
    }
    return result
  }

  private static func index(of duration: UInt64) -> Int {
    guard duration >> classBits != 0 else { return Int(duration) }
    let shift = UInt64(63 - duration.leadingZeroBitCount) - classBits
    return Int(shift << classBits + duration >> shift)
  }

  private static func middle(of index: Int) -> UInt64 {
    let index = UInt64(index)
    guard index >> (classBits + 1) != 0 else { return index }
    let shift = index >> classBits - 1
    let least = (index & (1 << classBits - 1) | 1 << classBits) << shift
    return least + (1 << shift) / 2
  }
}
