import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

extension Engine {
  @Suite("Stress: serial queues")
  struct SerialStressTests {
    @Test("S1 many producers, one serial queue: each producer's order, for every kind of submission")
    func producers() {
      let producers = 4
      let count = Sanitizer.shrunk(20_000)
      let queue = DispatchQueue(label: "serial")
      let last = Unprotected([Int](repeating: -1, count: producers))
      let disorder = Tally()
      let ended = onThreads(producers) { producer in
        var dice = Seed.dice(producer, of: "producers")
        for number in 0..<count {
          let item: @Sendable () -> Void = {
            if last.value[producer] != number - 1 { disorder.add() }
            last.value[producer] = number
          }
          switch Int.random(in: 0..<100, using: &dice) {
          case 0: queue.sync(execute: item)
          case 1: queue.sync(flags: .barrier, execute: item)
          case 2: queue.asyncAndWait(execute: item)
          case 3: queue.async(execute: DispatchWorkItem(block: item))
          case 4: queue.async(qos: .userInteractive, flags: .enforceQoS, execute: item)
          default: queue.async(execute: item)
          }
        }
        queue.sync { #expect(last.value[producer] == count - 1) }
      }
      #expect(ended)
      #expect(disorder.value == 0)
    }

    @Test("S6 many synchronous callers, with items that submit items")
    func crowd() {
      let queue = DispatchQueue(label: "serial")
      let count = Sanitizer.shrunk(1000)
      let sum = Unprotected(0)
      let group = DispatchGroup()
      let ended = onThreads(8) { _ in
        for _ in 0..<count {
          queue.sync {
            sum.value += 1
            queue.async(group: group) { sum.value += 1 }
          }
        }
      }
      #expect(ended && empties(group))
      #expect(queue.sync { sum.value } == 16 * count)
    }

    @Test("S5 queues made, used and dropped at once, by many threads")
    func dropped() {
      let ran = Tally()
      let group = DispatchGroup()
      let count = Sanitizer.shrunk(2000)
      let ended = onThreads(4) { thread in
        var dice = Seed.dice(thread, of: "dropped")
        for number in 0..<count {
          let target = dice.hits(oneIn: 3) ? DispatchQueue(label: "target \(number)") : nil
          let queue = DispatchQueue(
            label: "queue \(number)", attributes: dice.hits(oneIn: 2) ? .concurrent : [], target: target)
          switch Int.random(in: 0..<6, using: &dice) {
          case 0: queue.sync { _ = ran.add() }
          case 1: queue.async(group: group, flags: .barrier) { ran.add() }
          case 2:
            group.enter()
            queue.asyncAfter(deadline: .now() + .microseconds(Int.random(in: 0..<500, using: &dice))) {
              ran.add()
              group.leave()
            }
          case 3:
            queue.suspend()
            queue.async(group: group) { ran.add() }
            queue.resume()
          case 4:
            group.enter()
            queue.async { [unowned queue] in
              queue.async {
                ran.add()
                group.leave()
              }
            }
          default: queue.async(group: group) { ran.add() }
          }
        }
      }
      #expect(ended && empties(group))
      #expect(ran.value == 4 * count)
    }

    @Test("rings of serial queues that pass items to one another")
    func rings() {
      let queues = (0..<8).map { DispatchQueue(label: "ring \($0)") }
      let done = DispatchSemaphore(value: 0)
      let hops = Tally()
      let count = Sanitizer.shrunk(10_000)
      for start in 0..<4 { hop(start, count, queues, hops, done) }
      for _ in 0..<4 { #expect(comes(done)) }
      #expect(hops.value == 4 * count)
    }
  }
}

private func hop(
  _ place: Int, _ left: Int, _ queues: [DispatchQueue], _ hops: Tally, _ done: DispatchSemaphore
) {
  guard left > 0 else {
    done.signal()
    return
  }
  queues[place % queues.count].async {
    hops.add()
    hop(place + 1, left - 1, queues, hops, done)
  }
}
