// I. Semaphores.

import Glibc
import Testing

#if CONCOURSE
  import ConcourseEvents
#else
  import Dispatch
#endif

extension Conformance {
  @Suite("I. Semaphores")
  struct SemaphoreTests {
    @Test("S71 wait takes what signal gave, and the initial value")
    func counting() {
      let semaphore = DispatchSemaphore(value: 2)
      semaphore.wait()
      #expect(semaphore.wait(timeout: .now()) == .success)
      #expect(semaphore.wait(timeout: .now()) == .timedOut)
      semaphore.signal()
      semaphore.signal()
      #expect(semaphore.wait(timeout: .distantFuture) == .success)
      #expect(semaphore.wait(wallTimeout: .distantFuture) == .success)
      #expect(semaphore.wait(timeout: .now()) == .timedOut)
      semaphore.signal()
      semaphore.signal()
    }

    @Test("S71 1000 signals from many threads satisfy exactly 1000 waits")
    func noSignalLost() {
      let semaphore = DispatchSemaphore(value: 0)
      for _ in 0..<1_000 { DispatchQueue.global().async { semaphore.signal() } }
      for _ in 0..<1_000 { #expect(semaphore.comes()) }
      #expect(semaphore.wait(timeout: .now()) == .timedOut)
    }

    @Test("S71 many waiters are each released by one signal")
    func manyWaiters() {
      let semaphore = DispatchSemaphore(value: 0)
      let group = DispatchGroup()
      let released = Shared(0)
      for index in 0..<8 {
        DispatchQueue(label: "waiter \(index)").async(group: group) {
          for _ in 0..<100 where semaphore.comes() { released.increment() }
        }
      }
      for _ in 0..<800 { semaphore.signal() }
      #expect(group.empties())
      #expect(released.value == 800)
      #expect(semaphore.wait(timeout: .now()) == .timedOut)
    }

    @Test("S71 signal returns zero without a waiter")
    func signalWithoutWaiter() {
      let semaphore = DispatchSemaphore(value: 0)
      for _ in 0..<10 { #expect(semaphore.signal() == 0) }
      for _ in 0..<10 { #expect(semaphore.wait(timeout: .now()) == .success) }
    }

    @Test("S71 signal returns non-zero when it released a waiter")
    func signalWithWaiter() {
      let semaphore = DispatchSemaphore(value: 0)
      let aboutToWait = DispatchSemaphore(value: 0)
      let released = DispatchSemaphore(value: 0)
      let queue = DispatchQueue(label: "waiter")
      var releasedOne = false
      // A waiter may be slow to arrive, so one round proves nothing; that all of so many miss does.
      for _ in 0..<10_000 where !releasedOne {
        queue.async {
          aboutToWait.signal()
          if semaphore.comes() { released.signal() }
        }
        #expect(aboutToWait.comes())
        for _ in 0..<100 { sched_yield() }
        releasedOne = semaphore.signal() != 0
        #expect(released.comes())
      }
      #expect(releasedOne)
    }

    @Test("S72 a timed-out wait undoes its decrement")
    func timeoutUndoes() {
      let semaphore = DispatchSemaphore(value: 0)
      for _ in 0..<20 {
        #expect(semaphore.wait(timeout: .now() + .milliseconds(1)) == .timedOut)
        #expect(semaphore.wait(wallTimeout: .now() + .milliseconds(1)) == .timedOut)
      }
      #expect(semaphore.signal() == 0)
      #expect(semaphore.wait(timeout: .now()) == .success)
      #expect(semaphore.wait(timeout: .now()) == .timedOut)
    }

    @Test("S72 a timed wait does not end before its deadline")
    func notBeforeDeadline() {
      let semaphore = DispatchSemaphore(value: 0)
      for milliseconds in [1, 5, 20] {
        let deadline = DispatchTime.now() + .milliseconds(milliseconds)
        #expect(semaphore.wait(timeout: deadline) == .timedOut)
        #expect(DispatchTime.now() >= deadline)
      }
    }

    @Test("S72 now and past deadlines poll, on both clocks")
    func polls() {
      let semaphore = DispatchSemaphore(value: 0)
      let past = DispatchTime(uptimeNanoseconds: 1)
      let longAgo = DispatchWallTime(timespec: timespec(tv_sec: 1, tv_nsec: 0))
      #expect(semaphore.wait(timeout: DispatchTime(uptimeNanoseconds: 0)) == .timedOut)
      #expect(semaphore.wait(timeout: past) == .timedOut)
      #expect(semaphore.wait(wallTimeout: longAgo) == .timedOut)
      semaphore.signal()
      #expect(semaphore.wait(timeout: past) == .success)
      semaphore.signal()
      #expect(semaphore.wait(wallTimeout: longAgo) == .success)
    }

    @Test("S72 a signal that races with a timeout is either taken or kept, never both or neither")
    func racingTimeout() {
      let semaphore = DispatchSemaphore(value: 0)
      let queue = DispatchQueue(label: "signaller")
      for round in 0..<300 {
        let signalled = DispatchSemaphore(value: 0)
        queue.asyncAfter(deadline: .now() + .microseconds(round * 3)) {
          semaphore.signal()
          signalled.signal()
        }
        let first = semaphore.wait(timeout: .now() + .microseconds(500))
        #expect(signalled.comes())
        let second = semaphore.wait(timeout: .now())
        #expect((first == .success) != (second == .success))
      }
    }

    @Test("S73 a semaphore above its initial value may be released")
    func releaseAbove() {
      let gone = Shared(0)
      for value in [0, 1, 5] {
        let semaphore = DispatchSemaphore(value: value)
        semaphore.signal()
        gone.increment()
      }
      #expect(gone.value == 3)
    }

    @Test("a semaphore bounds how many items are inside")
    func bounding() {
      let slots = DispatchSemaphore(value: 3)
      let overlap = Overlap()
      let group = DispatchGroup()
      let queue = DispatchQueue(label: "bounded", attributes: .concurrent)
      for _ in 0..<300 {
        slots.wait()
        queue.async(group: group) {
          overlap.visit()
          slots.signal()
        }
      }
      #expect(group.empties())
      #expect(overlap.visits == 300)
      #expect(overlap.peak <= 3)
    }
  }
}
