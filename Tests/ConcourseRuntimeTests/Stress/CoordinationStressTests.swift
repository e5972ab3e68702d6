import Testing

@testable import ConcourseRuntime

extension Engine {
  @Suite("Stress: groups, semaphores, work items")
  struct CoordinationStressTests {
    @Test("S65, S66, S67 rounds on one group: notified exactly once, never before the last leave")
    func groupRounds() {
      let rounds = Sanitizer.shrunk(1000)
      let group = DispatchGroup()
      let queue = DispatchQueue(label: "told")
      let inside = (0..<rounds).map { _ in Tally() }
      let told = (0..<rounds).map { _ in Tally() }
      let tooEarly = Tally()
      var dice = Seed.dice()
      for round in 0..<rounds {
        group.enter()
        let members = Int.random(in: 1...6, using: &dice)
        for _ in 0..<members {
          inside[round].add()
          let leave: @Sendable () -> Void = { inside[round].add(-1) }
          if dice.hits(oneIn: 2) {
            DispatchQueue.global().async(group: group, execute: leave)
          } else {
            group.enter()
            DispatchQueue.global().async {
              leave()
              group.leave()
            }
          }
        }
        for _ in 0..<2 {
          group.notify(queue: queue) {
            if inside[round].value != 0 { tooEarly.add() }
            told[round].add()
          }
        }
        group.leave()
        if dice.hits(oneIn: 2) {
          #expect(empties(group))
          if inside[round].value != 0 { tooEarly.add() }
        }
      }
      #expect(empties(group))
      queue.sync {}
      // A notification that came due at the very end may not have reached the queue yet.
      let end = DispatchSemaphore(value: 0)
      group.notify(queue: queue) { end.signal() }
      #expect(comes(end))
      queue.sync {}
      #expect(tooEarly.value == 0)
      #expect(awaitValue { told.allSatisfy { $0.value == 2 } })
    }

    @Test("S66, S68 enter, leave, notify and wait from many threads: each notification once")
    func groupRaces() {
      let count = Sanitizer.shrunk(3000)
      let group = DispatchGroup()
      let told = Tally()
      let ended = onThreads(6) { thread in
        for _ in 0..<count {
          group.enter()
          if thread < 2 { group.notify(queue: .global()) { told.add() } }
          group.leave()
          if thread == 5 {
            // The group may be empty only for a moment: both a success and a timeout are correct.
            _ = group.wait(timeout: .now() + .microseconds(50))
          }
        }
      }
      #expect(ended)
      #expect(empties(group))
      #expect(awaitValue { told.value == 2 * count })
      #expect(told.value == 2 * count)
    }

    @Test("S71, S72 1000 signals from many threads satisfy 1000 waits, of which many time out first")
    func semaphoreTimeouts() {
      let semaphore = DispatchSemaphore(value: 0)
      let perThread = Sanitizer.shrunk(250)
      let ended = onThreads(8) { thread in
        var dice = Seed.dice(thread, of: "semaphoreTimeouts")
        for number in 0..<perThread {
          if thread % 2 == 0 {
            if number % 4 == 0 { for _ in 0..<Int.random(in: 0..<2000, using: &dice) { Processor.pause() } }
            semaphore.signal()
          } else {
            while semaphore.wait(timeout: .now() + .microseconds(Int.random(in: 0..<80, using: &dice)))
              == .timedOut
            {}
          }
        }
      }
      #expect(ended)
      #expect(semaphore.wait(timeout: .now()) == .timedOut)
      // ORDERING: relaxed; all threads have ended.
      #expect(semaphore.value.load(ordering: .relaxed) == 0)
      for _ in 0..<3 { semaphore.signal() }
      for _ in 0..<3 { #expect(comes(semaphore)) }
    }

    @Test("S55, S58, S59, S60 items cancelled, run, waited for and notified at the same time")
    func cancellation() {
      let count = Sanitizer.shrunk(2000)
      let queues = [
        DispatchQueue(label: "serial"), .global(), DispatchQueue(label: "c", attributes: .concurrent),
      ]
      let ran = Tally()
      let told = Tally()
      let group = DispatchGroup()
      let ended = onThreads(4) { thread in
        var dice = Seed.dice(thread, of: "cancellation")
        for _ in 0..<count / 4 {
          let runs = Tally()
          let item = DispatchWorkItem {
            runs.add()
            ran.add()
          }
          item.notify(queue: queues[0]) { told.add() }
          let before = dice.hits(oneIn: 4)
          if before { item.cancel() }
          queues.randomElement(using: &dice)!.async(group: group, execute: item)
          if dice.hits(oneIn: 2) { item.cancel() }
          if dice.hits(oneIn: 2) {
            #expect(item.wait(timeout: .now() + patience) == .success)
            #expect(runs.value <= (before ? 0 : 1))
          }
          item.cancel()
          #expect(item.isCancelled)
        }
      }
      #expect(ended && empties(group))
      #expect(awaitValue { told.value == count / 4 * 4 })
      #expect(ran.value <= count)
    }

    @Test("loops within loops, with synchronous items of a serial queue inside")
    func loops() {
      let queue = DispatchQueue(label: "serial")
      let sum = Unprotected(0)
      let size = Sanitizer.isOn ? 12 : 40
      let ended = onThreads(1) { _ in
        DispatchQueue.concurrentPerform(iterations: size) { outer in
          DispatchQueue.concurrentPerform(iterations: size) { inner in
            if inner % 3 == 0 { queue.sync { sum.value += 1 } } else { queue.async { sum.value += 1 } }
            if (outer + inner) % 7 == 0 { queue.asyncAndWait { sum.value += 1 } }
          }
        }
      }
      #expect(ended)
      guard ended else { return }
      let sevenths = (0..<size * size).filter { ($0 / size + $0 % size) % 7 == 0 }.count
      #expect(queue.sync { sum.value } == size * size + sevenths)
    }
  }
}

/// Waits until `condition` holds, and yields the processor meanwhile.
/// - Returns: false when it does not in time.
func awaitValue(nanoseconds: UInt64 = 120_000_000_000, _ condition: () -> Bool) -> Bool {
  let deadline = Clock.uptime() + nanoseconds
  while !condition() {
    if Clock.uptime() > deadline { return false }
    Processor.yield()
  }
  return true
}
