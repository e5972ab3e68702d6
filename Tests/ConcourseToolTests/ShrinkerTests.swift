import ConcourseSchedules
import Testing

@testable import ConcourseTool

@Suite("Shrinker")
struct ShrinkerTests {
  private static func switches(_ points: some Sequence<Int>) -> [ScheduleSwitch] {
    points.map { ScheduleSwitch(thread: 1, next: 2, point: UInt32($0)) }
  }

  /// A program that fails whenever all of these switches are made.
  private static func shrink(
    _ count: Int, needed: Set<Int>, most: Int = 2000,
    made: @escaping ([ScheduleSwitch]) -> [ScheduleSwitch] = { $0 }
  ) -> Shrinker {
    var shrinker = Shrinker(switches(0..<count), threads: 3, most: most)
    shrinker.shrink { candidates in
      for (place, candidate) in candidates.enumerated()
      where needed.isSubset(of: Set(candidate.map { Int($0.point) })) {
        return (place, made(candidate))
      }
      return nil
    }
    return shrinker
  }

  @Test(
    "what remains is what the failure needs, in its order",
    arguments: [[], [0], [99], [3, 50], [0, 1, 98, 99]])
  func needed(points: [Int]) {
    let shrinker = Self.shrink(100, needed: Set(points))
    #expect(shrinker.switches == Self.switches(points))
    #expect(shrinker.trials < 200)
  }

  @Test("lists of no, one and two switches")
  func small() {
    #expect(Self.shrink(0, needed: []).switches.isEmpty)
    #expect(Self.shrink(1, needed: []).switches.isEmpty)
    #expect(Self.shrink(1, needed: [0]).switches == Self.switches([0]))
    #expect(Self.shrink(2, needed: [0, 1]).switches == Self.switches([0, 1]))
  }

  @Test("a switch is saved by another that is made earlier, later, or for another thread")
  func variations() {
    // Fails with the switches 3 and 40, or with a single one elsewhere.
    let pair = Self.switches([3, 40])
    for single in [
      ScheduleSwitch(thread: 1, next: 2, point: 5), ScheduleSwitch(thread: 1, next: 0, point: 40),
      ScheduleSwitch(thread: 1, next: 2, point: 36),
    ] {
      var shrinker = Shrinker(Self.switches(0..<50), threads: 3)
      shrinker.shrink { candidates in
        for (place, candidate) in candidates.enumerated()
        where Set(pair).isSubset(of: candidate) || candidate == [single] {
          return (place, candidate)
        }
        return nil
      }
      #expect(shrinker.switches == [single])
    }
  }

  @Test("a switch that was not made is left out")
  func skipped() {
    // Odd switches are never made: they cannot be followed.
    let shrinker = Self.shrink(40, needed: [10, 20]) { $0.filter { $0.point.isMultiple(of: 2) } }
    #expect(shrinker.switches == Self.switches([10, 20]))
  }

  @Test("after the most trials the best list so far remains")
  func most() {
    let shrinker = Self.shrink(1000, needed: Set(stride(from: 0, to: 1000, by: 2)), most: 50)
    #expect(shrinker.switches.count >= 500)
    #expect(shrinker.trials < 1050)
  }
}
