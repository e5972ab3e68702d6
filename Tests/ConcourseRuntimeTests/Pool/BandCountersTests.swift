import Testing

@testable import ConcourseRuntime

@Suite("BandCounters")
struct BandCountersTests {
  @Test("several counts change at once and do not run into one another")
  func changes() {
    let counters = BandCounters()
    let begun = counters.apply(.init(active: 1, searching: 1, threads: 1))
    #expect([begun.active, begun.searching, begun.parked, begun.threads] == [1, 1, 0, 1])
    let parked = counters.apply(.init(active: -1, searching: -1, parked: 1))
    #expect([parked.active, parked.searching, parked.parked, parked.threads] == [0, 0, 1, 1])
    let gone = counters.apply(.init(parked: -1, threads: -1))
    #expect(gone.bits == 0)
  }

  @Test("a random walk keeps every count apart from the others")
  func walk() {
    var dice = Seed.dice()
    let counters = BandCounters()
    var expected = [0, 0, 0, 0]
    for _ in 0..<10_000 {
      let change = expected.map { Int.random(in: -min($0, 50)...min(50, 4000 - $0), using: &dice) }
      for index in 0..<4 { expected[index] += change[index] }
      let seen = counters.apply(
        .init(active: change[0], searching: change[1], parked: change[2], threads: change[3]))
      #expect([seen.active, seen.searching, seen.parked, seen.threads] == expected)
    }
    counters.reset()
    let end = counters.snapshot
    #expect(end.bits == 0)
  }
}
