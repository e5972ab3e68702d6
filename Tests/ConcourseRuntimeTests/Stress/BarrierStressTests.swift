import Testing

@testable import ConcourseRuntime

extension Engine {
  @Suite("Stress: barriers")
  struct BarrierStressTests {
    @Test("S15, trap 7: barrier syncs from many threads, among readers of all kinds")
    func barrierSyncs() {
      let queue = DispatchQueue(label: "data", attributes: .concurrent)
      let data = Pair()
      let count = Sanitizer.shrunk(1500)
      let writes = Tally()
      let group = DispatchGroup()
      let ended = onThreads(8) { thread in
        var dice = Seed.dice(thread, of: "barrierSyncs")
        for _ in 0..<count {
          switch Int.random(in: 0..<8, using: &dice) {
          case 0, 1:
            writes.add()
            queue.sync(flags: .barrier) { data.write() }
          case 2:
            writes.add()
            queue.async(group: group, flags: .barrier) { data.write() }
          case 3:
            writes.add()
            queue.asyncAndWait(flags: .barrier) { data.write() }
          case 4: queue.async(group: group) { data.read() }
          case 5: queue.asyncAndWait { data.read() }
          case 6: queue.sync { queue.sync { data.read() } }
          default: queue.sync { data.read() }
          }
        }
      }
      #expect(ended && empties(group))
      #expect(queue.sync { data.first.value } == writes.value)
      #expect(data.torn.value == 0)
    }

    @Test("S15, trap 8: barrier writers and synchronous readers from more items than threads")
    func moreBlocksThanThreads() {
      let queue = DispatchQueue(label: "data", attributes: .concurrent)
      let data = Pair()
      let group = DispatchGroup()
      let blocks = Sanitizer.shrunk(400)
      for block in 0..<blocks {
        DispatchQueue.global().async(group: group) {
          for round in 0..<10 {
            if (block + round) % 4 == 0 {
              queue.async(group: group, flags: .barrier) { data.write() }
            } else if (block + round) % 16 == 1 {
              queue.sync(flags: .barrier) { data.write() }
            }
            queue.sync { data.read() }
          }
        }
      }
      #expect(empties(group))
      #expect(data.torn.value == 0)
    }

    @Test("S15 barriers keep their order among ordinary items of one submitter")
    func order() {
      let queue = DispatchQueue(label: "data", attributes: .concurrent)
      let before = Tally()
      let wrong = Tally()
      let group = DispatchGroup()
      var dice = Seed.dice()
      var submitted = 0
      for _ in 0..<Sanitizer.shrunk(20_000) {
        if dice.hits(oneIn: 5) {
          let expected = submitted
          // Every earlier item has ended and no later one has begun.
          queue.async(group: group, flags: .barrier) { if before.value != expected { wrong.add() } }
        } else {
          submitted += 1
          queue.async(group: group) { before.add() }
        }
      }
      #expect(empties(group))
      #expect(wrong.value == 0)
      #expect(before.value == submitted)
    }
  }
}

/// Two numbers that are equal while no thread writes.
private final class Pair: Sendable {
  let first = Unprotected(0)
  let second = Unprotected(0)
  let torn = Tally()

  func write() {
    first.value += 1
    if first.value != second.value + 1 { torn.add() }
    second.value += 1
  }

  func read() { if first.value != second.value { torn.add() } }
}
