import Testing

@testable import ConcourseRuntime

extension Engine {
  @Suite("Stress: suspension and activation")
  struct SuspensionStressTests {
    @Test(
      "S27, S28 suspensions from many threads during submissions: nothing lost, nothing overlaps",
      arguments: [true, false])
    func storm(serial: Bool) {
      let queue = DispatchQueue(label: "storm", attributes: serial ? [] : .concurrent)
      let count = Sanitizer.shrunk(3000)
      let inside = Tally()
      let overlaps = Tally()
      let ran = Tally()
      let group = DispatchGroup()
      let ended = onThreads(6) { thread in
        for number in 0..<count {
          if thread % 2 == 0 { queue.suspend() }
          queue.async(group: group, flags: number % 10 == 0 ? .barrier : []) {
            if inside.add() != 1 && serial { overlaps.add() }
            ran.add()
            inside.add(-1)
          }
          if thread % 2 == 0 { queue.resume() }
          if thread == 5 && number % 50 == 0 { queue.sync {} }
        }
      }
      #expect(ended && empties(group))
      #expect(ran.value == 6 * count)
      #expect(overlaps.value == 0)
    }

    @Test(
      "S35 suspending a target stops a queue below that always has a next item", arguments: [true, false])
    func endlessQueueBelow(serial: Bool) {
      let target = DispatchQueue(label: "target", attributes: serial ? [] : .concurrent)
      let queue = DispatchQueue(label: "below", target: target)
      let (ran, limit) = (Tally(), 10_000)
      let (suspended, done) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
      @Sendable func step() {
        queue.async {
          let number = ran.add()
          if number == 10 {
            target.suspend()
            suspended.signal()
          }
          if number < limit { step() } else { done.signal() }
        }
      }
      step()
      #expect(comes(suspended))
      // No other queue may have work: a drain yields to it.
      let stops = done.wait(timeout: .now() + .milliseconds(200)) == .timedOut
      #expect(stops && ran.value < 1000)
      target.resume()
      #expect(!stops || comes(done))
      #expect(ran.value == limit)
    }

    @Test("S27 nothing starts between the last item before a suspension and the resume")
    func nothingStarts() {
      let queue = DispatchQueue(label: "held", attributes: .concurrent)
      let isHeld = Tally()
      let wrong = Tally()
      let group = DispatchGroup()
      for _ in 0..<Sanitizer.shrunk(500) {
        for _ in 0..<4 { queue.async(group: group) { if isHeld.value != 0 { wrong.add() } } }
        // This item is alone on the queue, so none may start until the resume.
        queue.sync(flags: .barrier) {
          queue.suspend()
          isHeld.add()
        }
        for _ in 0..<4 { queue.async(group: group) { if isHeld.value != 0 { wrong.add() } } }
        Processor.yield()
        isHeld.add(-1)
        queue.resume()
      }
      #expect(empties(group))
      #expect(wrong.value == 0)
    }

    @Test("S30, S31 inactive queues activated by many threads while others submit and wait")
    func activation() {
      let ran = Tally()
      let group = DispatchGroup()
      let rounds = Sanitizer.shrunk(300)
      let queues = (0..<rounds).map { number in
        DispatchQueue(
          label: "inactive \(number)",
          attributes: number % 2 == 0 ? .initiallyInactive : [.initiallyInactive, .concurrent])
      }
      let ended = onThreads(5) { thread in
        for queue in queues {
          switch thread {
          case 0, 1: queue.activate()
          case 2: queue.sync { _ = ran.add() }
          case 3: queue.sync(flags: .barrier) { _ = ran.add() }
          default: for _ in 0..<3 { queue.async(group: group) { ran.add() } }
          }
        }
      }
      #expect(ended && empties(group))
      #expect(ran.value == 5 * rounds)
    }
  }
}
