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

    private static let inside = "wait() on a group from inside an item that was submitted with it"

    @Test("S154 a group that its own item waits for: on a serial queue, and in an inner sync")
    func ownItemOnSerialQueue() async {
      let plain = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let group = DispatchGroup()
        DispatchQueue(label: "serial").async(group: group) { group.wait() }
        awaitDeath()
      }
      plain.says(Self.inside + ", on queue \"serial\": the item would wait for itself")
      let inner = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let group = DispatchGroup()
        let (serial, other) = (DispatchQueue(label: "serial"), DispatchQueue(label: "other"))
        serial.async(group: group) { other.sync { _ = group.wait(timeout: .distantFuture) } }
        awaitDeath()
      }
      inner.says(Self.inside + ", on queue \"other\": the item would wait for itself")
    }

    @Test("S154 a group that its own item waits for: on other queues, in a barrier, in a work item")
    func ownItemElsewhere() async {
      let concurrent = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let group = DispatchGroup()
        DispatchQueue(label: "queue", attributes: .concurrent).async(group: group) { group.wait() }
        awaitDeath()
      }
      concurrent.says(Self.inside)
      let barrier = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let group = DispatchGroup()
        let queue = DispatchQueue(label: "queue", attributes: .concurrent)
        queue.async(group: group, flags: .barrier) { group.wait() }
        awaitDeath()
      }
      barrier.says(Self.inside)
      let global = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let group = DispatchGroup()
        DispatchQueue.global().async(group: group) { group.wait() }
        awaitDeath()
      }
      global.says(Self.inside)
      let item = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let group = DispatchGroup()
        DispatchQueue.global().async(group: group, execute: DispatchWorkItem { group.wait() })
        awaitDeath()
      }
      item.says(Self.inside)
      let nested = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let group = DispatchGroup()
        let target = DispatchQueue(label: "target")
        let queue = DispatchQueue(label: "queue", attributes: .concurrent, target: target)
        queue.async(group: group) { group.wait() }
        awaitDeath()
      }
      nested.says(Self.inside)
    }

    @Test("S154 waits that can end: with a time-out, for another group, in another thread, after the item")
    func waitsThatEnd() async {
      await #expect(processExitsWith: .success) {
        let (group, other) = (DispatchGroup(), DispatchGroup())
        let (queue, inner) = (DispatchQueue(label: "queue"), DispatchQueue(label: "inner"))
        let later = DispatchQueue(label: "later")
        let concurrent = DispatchQueue(label: "concurrent", attributes: .concurrent)
        let ended = Tally()
        for each in [queue, concurrent, DispatchQueue.global()] {
          each.async(group: group) {
            #expect(group.wait(timeout: .now()) == .timedOut)
            #expect(group.wait(timeout: .now() + 0.06) == .timedOut)
            // Items of another group, also on the same queue, and what this item submits.
            inner.async(group: other) {}
            other.wait()
            inner.sync {}
            // A thread that is not in the item.
            startThread {
              group.wait()
              ended.add()
            }
            // An item without a group, which waits for this one.
            later.async {
              group.wait()
              ended.add()
            }
          }
          // The same thread may run these next.
          each.async {
            group.wait()
            ended.add()
          }
        }
        #expect(awaitValue { ended.value == 9 })
        // An item that has left its group, on the thread that waits then.
        DispatchQueue.global().async(group: group) {}
        group.notify(queue: queue) {
          group.wait()
          ended.add()
        }
        #expect(awaitValue { ended.value == 10 })
      }
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
