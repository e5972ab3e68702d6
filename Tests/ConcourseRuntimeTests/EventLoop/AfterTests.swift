import Glibc
import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

extension Engine {
  @Suite("asyncAfter")
  struct AfterTests {
    @Test("S81 an earlier deadline that is set later does not wait for a later one")
    func rearmed() {
      // Meaningless if this thread was delayed until a deadline had come: repeat.
      for _ in 0..<10 {
        let order = Shared<[Int]>([])
        let group = DispatchGroup()
        let queue = DispatchQueue(label: "timers")
        let start = DispatchTime.now()
        for (place, delay) in [(2, 1.0), (1, 0.4), (0, 0.0)] {
          group.enter()
          queue.asyncAfter(deadline: start + delay) {
            order.change { $0.append(place) }
            group.leave()
          }
        }
        let inTime = DispatchTime.now() < start + 0.4
        #expect(empties(group))
        #expect(order.value.count == 3)
        if inTime {
          #expect(order.value == [0, 1, 2])
          return
        }
      }
      Issue.record("the machine was too busy to set three timers within 0.4 seconds")
    }

    @Test("S81 a submission that is already due does not overtake earlier deadlines")
    func overdue() {
      let order = Shared<[Int]>([])
      let group = DispatchGroup()
      let queue = DispatchQueue(label: "timers")
      var number = 0
      func submit(at time: UInt64) {
        let place = number
        number += 1
        group.enter()
        queue.asyncAfter(deadline: DispatchTime(uptimeNanoseconds: time)) {
          order.change { $0.append(place) }
          group.leave()
        }
      }
      for round in 0..<300 {
        let soon = Clock.uptime() + 20_000
        submit(at: soon)
        // Some find the first one still in the loop, some in flight, and some submitted.
        while Clock.uptime() < soon + UInt64(round % 30) * 10_000 {}
        for later: UInt64 in 1...3 { submit(at: soon + later) }
      }
      #expect(empties(group))
      #expect(order.value == Array(0..<number))
    }

    @Test("the lagging clock never reports too early that a time has passed")
    func lagging() {
      for isWall in [false, true] {
        func now() -> UInt64 { isWall ? Clock.wall() : Clock.uptime() }
        for step in 0..<20_000 {
          let time = now() + UInt64(step)
          if Clock.hasPassed(time, isWall: isWall) { #expect(now() >= time) }
        }
        #expect(Clock.hasPassed(now(), isWall: isWall))
        #expect(!Clock.hasPassed(now() + 3_600_000_000_000, isWall: isWall))
      }
    }

    @Test("a delay as a Duration, and flags and classes of delayed items")
    func forms() {
      let queue = DispatchQueue(label: "shared", attributes: .concurrent)
      let start = Clock.uptime()
      let found = Shared<[Bool]>([])
      let done = DispatchSemaphore(value: 0)
      queue.asyncAfter(.milliseconds(10), qos: .utility, flags: [.barrier, .enforceQoS]) {
        found.change {
          $0 = [
            Clock.uptime() >= start + 10_000_000, _dispatchPreconditionTest(.onQueueAsBarrier(queue)),
            Frame.current?.pointee.level == .utility,
          ]
        }
        done.signal()
      }
      #expect(comes(done))
      #expect(found.value == [true, true, true])
    }

    @Test("S82 a closure that will never run is released at once")
    func never() {
      let released = DispatchSemaphore(value: 0)
      final class Witness: Sendable {
        let released: DispatchSemaphore
        init(_ released: DispatchSemaphore) { self.released = released }
        deinit { released.signal() }
      }
      let witness = Witness(released)
      DispatchQueue.global().asyncAfter(deadline: .distantFuture) { _ = witness }
      DispatchQueue.global().asyncAfter(wallDeadline: .distantFuture) { _ = witness }
      _ = consume witness
      #expect(comes(released))
    }

    /// Trap 19, in a process of its own, whose descriptors are used up.
    @Test(
      "trap 19: without descriptors timers still fire, after one line about it", .enabled(if: !Sanitizer.isOn)
    )
    func withoutDescriptors() async {
      let end = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
        // The system may allow a billion.
        var limit = rlimit(rlim_cur: 256, rlim_max: 256)
        #expect(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
        while dup(2) >= 0 {}
        let group = DispatchGroup()
        let early = Tally()
        for number in 0..<20 {
          let deadline = DispatchTime.now() + .milliseconds(3 * (20 - number))
          group.enter()
          DispatchQueue.global().asyncAfter(deadline: deadline) {
            if DispatchTime.now() < deadline { early.add() }
            group.leave()
          }
          group.enter()
          DispatchQueue.global().asyncAfter(wallDeadline: .now() + .milliseconds(number)) { group.leave() }
        }
        let fired = empties(group)
        // Room for Swift Testing to report.
        for descriptor: Int32 in 100..<200 { close(descriptor) }
        #expect(fired)
        #expect(early.value == 0)
      }
      let spoken = String(decoding: end?.standardErrorContent ?? [], as: UTF8.self)
      #expect(
        spoken == "Concourse: no descriptors left for the event loop; timers go on with coarser sleeping\n")
    }

    @Test(
      "cancelling an item calls off the submissions that have not become due, in whatever order others did")
    func callingOff() {
      // SAFETY: one thread uses it.
      final class Submission: DeferredSubmission, @unchecked Sendable {
        var delayIndex = 0
        var calls = 0
        func callOff() { calls += 1 }
      }
      for count in [1, 2, 7, 100] {
        let item = DispatchWorkItem {}
        let all = (0..<count).map { _ in Submission() }
        for submission in all { #expect(item.beginDelay(submission) {}) }
        let due = Int.random(in: 0...count)
        let mixed = all.shuffled()
        for submission in mixed[..<due] { item.endDelay(submission) }
        item.cancel()
        // As timers do for which the cancellation came too late.
        for submission in mixed[due...] { item.endDelay(submission) }
        #expect(mixed.map(\.calls) == (0..<count).map { $0 < due ? 0 : 1 })
      }
    }
  }
}
