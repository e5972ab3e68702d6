/// Finds few switches that still fail.
///
/// It leaves out ever smaller parts of the list until no single switch can be left out (delta debugging). Then one switch
/// less may still do if another is made a little earlier or later, or lets another thread go on; so it tries these, and
/// begins anew if one fails.
package struct Shrinker {
  /// Runs some lists of switches, perhaps at the same time. Of the first that fails as before, the switches that were made
  /// and its place; nil if none does. An empty list of lists is never asked for.
  package typealias Trial = ([[ScheduleSwitch]]) -> (place: Int, made: [ScheduleSwitch])?

  /// The best list so far. It fails.
  package private(set) var switches: [ScheduleSwitch]
  /// Lists that were tried.
  package private(set) var trials = 0
  private let threads: Int
  private let most: Int

  /// - Parameters:
  ///   - threads: How many threads a run has.
  ///   - most: Trials after which the best list is good enough.
  package init(_ switches: [ScheduleSwitch], threads: Int, most: Int = 2000) {
    self.switches = switches
    self.threads = threads
    self.most = most
  }

  package mutating func shrink(_ trial: Trial) {
    repeat { leaveOut(trial) } while switches.count > 1 && trials < most && attempt(variations, trial)
  }

  private mutating func leaveOut(_ trial: Trial) {
    // Many failures need no switch at all.
    if !switches.isEmpty { _ = attempt([[]], trial) }
    var parts = 2
    while switches.count > 1 && trials < most {
      parts = min(parts, switches.count)
      let candidates = Self.split(switches.count, parts).map { part in
        Array(switches[..<part.lowerBound] + switches[part.upperBound...])
      }
      if attempt(candidates, trial) {
        parts = max(2, min(parts - 1, switches.count))
      } else if parts < switches.count {
        parts = min(parts * 2, switches.count)
      } else {
        break
      }
    }
  }

  /// The most switches of which variations are tried: there are as many as the square of that, and more.
  private static let mostVaried = 12
  private static let farthest: Int64 = 4

  /// Lists with one switch less, in which another one is changed.
  private var variations: [[ScheduleSwitch]] {
    guard switches.count <= Self.mostVaried else { return [] }
    var lists: [[ScheduleSwitch]] = []
    for omitted in switches.indices {
      for changed in switches.indices where changed != omitted {
        var list = switches
        let original = list[changed]
        for next in 0..<UInt16(clamping: threads) where next != original.next && next != original.thread {
          list[changed].next = next
          lists.append(Self.without(omitted, list))
        }
        list[changed].next = original.next
        for distance in 1...Self.farthest {
          for point in [Int64(original.point) - distance, Int64(original.point) + distance] {
            guard point > 0, let point = UInt32(exactly: point) else { continue }
            list[changed].point = point
            lists.append(Self.without(omitted, list))
          }
        }
      }
    }
    return lists
  }

  private static func without(_ index: Int, _ switches: [ScheduleSwitch]) -> [ScheduleSwitch] {
    Array(switches[..<index] + switches[(index + 1)...])
  }

  private mutating func attempt(_ candidates: [[ScheduleSwitch]], _ trial: Trial) -> Bool {
    if candidates.isEmpty { return false }
    guard let (place, made) = trial(candidates) else {
      trials += candidates.count
      return false
    }
    trials += place + 1
    // A switch that could not be followed is not needed. What was made may not repeat the list otherwise.
    let candidate = candidates[place]
    switches = made.count <= candidate.count ? made : candidate
    return true
  }

  private static func split(_ count: Int, _ parts: Int) -> [Range<Int>] {
    (0..<parts).map { count * $0 / parts..<count * ($0 + 1) / parts }
  }
}
