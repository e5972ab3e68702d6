// G. Work items.

import Testing

#if CONCOURSE
  import ConcourseEvents
#else
  import Dispatch
#endif

extension Conformance {
  @Suite("G. Work items")
  struct WorkItemTests {
    /// Hands an item to another thread.
    // SAFETY: both runtimes let several threads use one work item; the incumbent's is just not
    // marked Sendable.
    private struct Handed: @unchecked Sendable {
      let value: DispatchWorkItem

      init(_ value: DispatchWorkItem) { self.value = value }
    }

    @Test("S54 performs and submissions of one item all execute it")
    func repeatedExecution() {
      let count = Shared(0)
      let item = DispatchWorkItem { count.increment() }
      let queue = DispatchQueue(label: "repeat")
      item.perform()
      item.perform()
      queue.sync(execute: item)
      queue.async(execute: item)
      queue.sync {}
      #expect(count.value == 4)
    }

    @Test("S54 perform runs on the caller, cancelled items do not run")
    func perform() {
      let count = Shared(0)
      let item = DispatchWorkItem { count.increment() }
      item.perform()
      #expect(count.value == 1)
      item.cancel()
      item.perform()
      #expect(count.value == 1)
    }

    @Test("S55 wait returns once the item completed, and at once when it already has")
    func waitForCompletion() {
      let queue = DispatchQueue(label: "wait")
      let finished = Shared(false)
      let item = DispatchWorkItem {
        _ = othersHadTheirTurn()
        finished.set(true)
      }
      queue.async(execute: item)
      #expect(item.wait(timeout: .now() + patience) == .success)
      #expect(finished.value)
      let done = DispatchWorkItem {}
      done.perform()
      #expect(done.wait(timeout: .now()) == .success)
    }

    @Test("S55 wait without a timeout, and on the wall clock")
    func otherWaits() {
      let first = DispatchWorkItem {}
      DispatchQueue.global().async(execute: first)
      first.wait()
      let second = DispatchWorkItem {}
      DispatchQueue.global().async(execute: second)
      #expect(second.wait(wallTimeout: .now() + patience) == .success)
    }

    @Test("S55 wait blocks on an item that has not been submitted yet")
    func waitBeforeSubmission() {
      let submitted = Shared(false)
      let item = DispatchWorkItem {}
      let handed = Handed(item)
      let aboutToWait = DispatchSemaphore(value: 0)
      let released = DispatchSemaphore(value: 0)
      let result = Shared<DispatchTimeoutResult?>(nil)
      let wasSubmitted = Shared(false)
      DispatchQueue(label: "waiter").async {
        aboutToWait.signal()
        let outcome = handed.value.wait(timeout: .now() + patience)
        wasSubmitted.set(submitted.value)
        result.set(outcome)
        released.signal()
      }
      #expect(aboutToWait.comes())
      #expect(othersHadTheirTurn())
      #expect(result.value == nil)
      submitted.set(true)
      DispatchQueue.global().async(execute: item)
      #expect(released.comes())
      #expect(result.value == .success)
      #expect(wasSubmitted.value)
    }

    @Test("S56 a wait that times out fails and may be repeated")
    func timeouts() {
      let item = DispatchWorkItem {}
      #expect(item.wait(timeout: .now()) == .timedOut)
      #expect(item.wait(timeout: .now() + .milliseconds(5)) == .timedOut)
      #expect(item.wait(wallTimeout: .now() + .milliseconds(5)) == .timedOut)
      DispatchQueue.global().async(execute: item)
      #expect(item.wait(timeout: .now() + patience) == .success)
    }

    @Test("S58 notifications are submitted when the item completes, or at once if it has")
    func notifications() {
      let queue = DispatchQueue(label: "notify")
      let order = Shared([String]())
      let fired = DispatchSemaphore(value: 0)
      let item = DispatchWorkItem { order.change { $0.append("item") } }
      item.notify(queue: queue) {
        order.change { $0.append("notification") }
        fired.signal()
      }
      let second = DispatchWorkItem {
        order.change { $0.append("notification") }
        fired.signal()
      }
      item.notify(queue: queue, execute: second)
      #expect(othersHadTheirTurn())
      #expect(order.value.isEmpty)
      DispatchQueue.global().async(execute: item)
      #expect(fired.comes())
      #expect(fired.comes())
      #expect(order.value == ["item", "notification", "notification"])
      item.notify(qos: .utility, flags: .barrier, queue: queue) { fired.signal() }
      #expect(fired.comes())
    }

    @Test(
      "S58 notifications of an item that is released without having run are submitted",
      arguments: [false, true])
    func releasedNotifications(isCancelled: Bool) {
      let notified = DispatchSemaphore(value: 0)
      let queue = DispatchQueue(label: "notified")
      var item: DispatchWorkItem? = DispatchWorkItem { Issue.record("ran") }
      item?.notify(queue: queue) { notified.signal() }
      item?.notify(queue: queue, execute: DispatchWorkItem { notified.signal() })
      if isCancelled { item?.cancel() }
      #expect(notified.wait(timeout: .now()) == .timedOut)
      item = nil
      #expect(notified.wait(timeout: .now() + patience) == .success)
      #expect(notified.wait(timeout: .now() + patience) == .success)
    }

    @Test("S59 cancel is sticky and visible at once, and the body never runs")
    func cancelBeforeStart() {
      let queue = DispatchQueue(label: "cancel")
      let ran = Shared(false)
      let item = DispatchWorkItem { ran.set(true) }
      #expect(!item.isCancelled)
      queue.suspend()
      queue.async(execute: item)
      item.cancel()
      item.cancel()
      #expect(item.isCancelled)
      queue.resume()
      queue.sync {}
      #expect(!ran.value)
      #expect(item.isCancelled)
    }

    @Test("S59 waiters and notifications of a cancelled item complete when its turn comes")
    func cancelledCompletion() {
      let queue = DispatchQueue(label: "turn")
      let elsewhere = DispatchQueue(label: "elsewhere")
      let fired = DispatchSemaphore(value: 0)
      let item = DispatchWorkItem {}
      queue.suspend()
      queue.async(execute: item)
      item.notify(queue: elsewhere) { fired.signal() }
      item.cancel()
      #expect(othersHadTheirTurn())
      #expect(fired.wait(timeout: .now()) == .timedOut)
      #expect(item.wait(timeout: .now()) == .timedOut)
      queue.resume()
      #expect(fired.comes())
      #expect(item.wait(timeout: .now() + patience) == .success)
    }

    @Test("S60 cancelling a running item does not interrupt it, and the item can see it")
    func cancelWhileRunning() {
      // SAFETY: set before the item is submitted, read by the item, cleared after it finished.
      final class Holder: @unchecked Sendable {
        var item: DispatchWorkItem?
      }
      let holder = Holder()
      let started = DispatchSemaphore(value: 0)
      let cancelled = DispatchSemaphore(value: 0)
      let seen = Shared([Bool]())
      let item = DispatchWorkItem {
        let before = holder.item?.isCancelled ?? true
        started.signal()
        let inTime = cancelled.comes()
        let after = holder.item?.isCancelled ?? false
        seen.set([before, inTime, after])
      }
      holder.item = item
      DispatchQueue.global().async(execute: item)
      #expect(started.comes())
      item.cancel()
      cancelled.signal()
      #expect(item.wait(timeout: .now() + patience) == .success)
      #expect(seen.value == [false, true, true])
      holder.item = nil
    }

    @Test("S60 a cancelled item submitted to a group still leaves the group")
    func cancelledInGroup() {
      let group = DispatchGroup()
      let item = DispatchWorkItem {}
      item.cancel()
      DispatchQueue(label: "group").async(group: group, execute: item)
      #expect(group.empties())
    }

    @Test("S62 the queue keeps a submitted item alive, then releases what it captured")
    func lifetime() {
      let queue = DispatchQueue(label: "lifetime")
      let gone = DispatchSemaphore(value: 0)
      let ran = Shared(false)
      queue.suspend()
      do {
        let witness = Witness(gone: gone)
        queue.async(
          execute: DispatchWorkItem {
            witness.remember()
            ran.set(true)
          })
      }
      #expect(othersHadTheirTurn())
      #expect(gone.wait(timeout: .now()) == .timedOut)
      queue.resume()
      #expect(gone.comes())
      #expect(ran.value)
    }
  }
}
