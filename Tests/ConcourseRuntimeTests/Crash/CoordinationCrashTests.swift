import Glibc
import Testing

@testable import ConcourseRuntime

extension Crash {
  @Suite("Groups and semaphores out of balance")
  struct CoordinationCrashTests {
    @Test("S63 leave without enter")
    func unbalancedLeave() async {
      let fresh = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        DispatchGroup().leave()
      }
      fresh.says("leave() on a group that is empty: more leaves than enters")
      let used = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let group = DispatchGroup()
        group.enter()
        group.leave()
        group.leave()
      }
      used.says("leave() on a group that is empty: more leaves than enters")
    }

    @Test("S63 leave on behalf of a submitted item")
    func leaveForItem() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let group = DispatchGroup()
        let queue = DispatchQueue(label: "queue", attributes: .initiallyInactive)
        queue.async(group: group) {}
        group.leave()
      }
      end.says("leave() on a group that is empty: more leaves than enters")
    }

    @Test("S63 more entries than a group can count")
    func tooManyEntries() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let group = DispatchGroup()
        // ORDERING: relaxed; this thread alone uses the group. A thousand million calls would take long.
        group.state.word.store(GroupState.most - 2, ordering: .relaxed)
        group.enter()
        group.enter()
      }
      end.says("enter() on a group with 2^30 outstanding entries: leave() is missing")
    }

    @Test("S70 a negative semaphore value")
    func negativeSemaphore() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        _ = DispatchSemaphore(value: -1)
      }
      end.says("DispatchSemaphore(value: -1): the value must not be negative")
    }

    @Test("S71 a signal beyond the greatest value")
    func tooManySignals() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let semaphore = DispatchSemaphore(value: .max - 1)
        // The last place that can be counted, and the toolchain's Dispatch wraps with the next: a poll then hangs.
        precondition(semaphore.signal() == 0)
        precondition(semaphore.wait(timeout: .now()) == .success)
        precondition(semaphore.signal() == 0)
        semaphore.signal()
      }
      end.says("signal() on a semaphore with Int.max places: more signals than can be counted")
    }

    @Test("S73 dropping a semaphore below its initial value")
    func semaphoreInUse() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        takeOne(of: DispatchSemaphore(value: 3))
      }
      end.says("a semaphore was released while in use: its value is 2, below the 3 it was created with")
    }
  }
}

private func takeOne(of semaphore: DispatchSemaphore) { semaphore.wait() }
