import Testing

@testable import ConcourseModel

/// Threads that wait for work items, groups, semaphores and once bodies, and what is notified in their place.
extension ModelSuite {
  @Suite struct Waits {
    /// A deadline that has passed when the waiter looks at the clock.
    private static let passed = Deadline.uptime(1)

    // MARK: Work items

    private static func itemAgainstWaiters() {
      let written = Model.Cell(false, "written")
      let item = DispatchWorkItem { written.write(true) }
      let queue = DispatchQueue(label: "notified")
      let notified = Model.Log<Bool>()
      Model.thread("runner") { item.perform() }
      Model.thread("waiter") {
        item.wait()
        Model.check(written.read(), "the wait ended before the item")
      }
      Model.thread("notifier") { item.notify(queue: queue) { notified.append(written.read()) } }
      Model.run()
      Model.check(notified.entries == [true], "notified: \(notified.entries)")
    }

    @Test func workItems() {
      expectComplete(
        Model.explore("a work item, a wait, a notification", bound: 1) { Self.itemAgainstWaiters() })
    }

    @Test func faultsOfWorkItemsAreFound() {
      expectFound(
        PlantedFault(.noWake, "WorkItemState", "wakeWaiters()"),
        PlantedFault(.noWrite, "WorkItemState", "complete()"),
        PlantedFault(.noWrite, "WorkItemState", "registerInterest()"),
        PlantedFault(.relaxed, "WorkItemState", "complete()")
      ) { Self.itemAgainstWaiters() }
    }

    /// A wait whose deadline passes while the item ends has succeeded only if it sees what the item did.
    private static func lateWaitForItem() {
      let written = Model.Cell(false, "written")
      let item = DispatchWorkItem { written.write(true) }
      Model.thread("runner") { item.perform() }
      Model.thread("late") {
        if item.wait(until: passed) == .success {
          Model.check(written.read(), "the wait ended before the item")
        }
      }
      Model.run()
      Model.check(written.read(), "the item did not run")
    }

    @Test func lateWaitsForItems() {
      expectComplete(Model.explore("a late wait for a work item", bound: 3) { Self.lateWaitForItem() })
      expectFound(PlantedFault(.relaxed, "WorkItemState", "sleepUntilComplete(_:beforeSleep:)"), bound: 2) {
        Self.lateWaitForItem()
      }
    }

    /// Two threads cancel and run an item that a third one waits for. A thread that sees the cancellation sees what
    /// came before it.
    private static func cancelAgainstRun() {
      let reason = Model.Cell(0, "reason")
      let ran = Model.Cell(false, "ran")
      let item = DispatchWorkItem { ran.write(true) }
      Model.thread("runner") { DispatchQueue.global().async(execute: item) }
      Model.thread("canceller") {
        reason.write(1)
        item.cancel()
      }
      Model.thread("waiter") {
        item.wait()
        if item.isCancelled { Model.check(reason.read() == 1, "no reason") }
        _ = ran.read()
      }
      Model.run()
    }

    @Test func cancelledItems() {
      expectComplete(Model.explore("cancel against run and wait", bound: 1) { Self.cancelAgainstRun() })
      expectFound(
        PlantedFault(.relaxed, "WorkItemState", "cancel()"),
        PlantedFault(.relaxed, "WorkItemState", "isCancelled"),
        PlantedFault(.noWake, "WorkItemState", "wakeWaiters()")
      ) { Self.cancelAgainstRun() }
    }

    // MARK: Groups

    private static func groupAgainstLeaver(late: Bool) {
      let group = DispatchGroup()
      let done = Model.Cell(false, "done")
      let queue = DispatchQueue(label: "notified")
      let notified = Model.Log<Bool>()
      group.enter()
      Model.thread("leaver") {
        done.write(true)
        group.leave()
      }
      Model.thread("notifier") { group.notify(queue: queue) { notified.append(done.read()) } }
      Model.thread("waiter") {
        if group.wait(until: late ? passed : .never) == .success { Model.check(done.read(), "ended early") }
      }
      Model.run()
      Model.check(notified.entries == [true], "notified: \(notified.entries)")
      Model.check(group.wait(until: .immediate) == .success, "the group is not empty")
    }

    @Test(arguments: [false, true]) func groups(late: Bool) {
      expectComplete(
        Model.explore("a group, a notification, a \(late ? "late " : "")wait", bound: 1) {
          Self.groupAgainstLeaver(late: late)
        })
    }

    /// A global queue runs a notification as an item of its own.
    @Test func notificationOnAGlobalQueue() {
      expectComplete(
        Model.explore("a notification on a global queue", bound: 1) {
          let group = DispatchGroup()
          let queue = DispatchQueue.global()
          let notified = Model.Log<Bool>()
          group.enter()
          Model.thread("notifier") { group.notify(queue: queue) { notified.append(true) } }
          Model.thread("leaver") { group.leave() }
          Model.run()
          Model.check(notified.entries == [true], "notified: \(notified.entries)")
          Queues.checkIdle(queue)
        })
    }

    @Test func faultsOfGroupsAreFound() {
      expectFound(
        PlantedFault(.noWake, "DispatchGroup", "submitRegistered()"),
        PlantedFault(.noWrite, "DispatchGroup", "submitRegistered()"),
        PlantedFault(.noWrite, "GroupState", "register()"),
        PlantedFault(.relaxed, "GroupState", "leave()")
      ) { Self.groupAgainstLeaver(late: false) }
      expectFound(PlantedFault(.relaxed, "DispatchGroup", "sleep(until:_:)"), bound: 2) {
        Self.groupAgainstLeaver(late: true)
      }
    }

    /// The group is entered again as soon as it was empty: a wait that began before ends all the same.
    private static func usedAgain() {
      let group = DispatchGroup()
      let first = Model.Cell(false, "first")
      group.enter()
      Model.thread("user") {
        first.write(true)
        group.leave()
        group.enter()
        group.leave()
      }
      for name in ["left", "right"] {
        Model.thread(name) {
          group.wait()
          Model.check(first.read(), "ended early")
        }
      }
      Model.run()
    }

    @Test func groupsThatAreUsedAgain() {
      expectComplete(Model.explore("a group that is used again", bound: 2, stale: 0) { Self.usedAgain() })
      expectComplete(Model.explore("a group that is used again, stale", bound: 1) { Self.usedAgain() })
      expectFound(
        PlantedFault(.noWrite, "DispatchGroup", "submitRegistered()"),
        PlantedFault(.noWake, "DispatchGroup", "submitRegistered()"), bound: 2, stale: 0
      ) { Self.usedAgain() }
    }

    // MARK: Semaphores

    /// A wait with a deadline, a signal, and a clock that moves: the signal is either taken or left.
    private static func timeoutAgainstSignal() {
      Model.moveClock()
      let semaphore = DispatchSemaphore(value: 0)
      let results = Model.Log<DispatchTimeoutResult>()
      let data = Model.Cell(0, "data")
      Model.thread("waiter") {
        let result = semaphore.wait(until: .uptime(Clock.uptimeAtStart + 1_000))
        if result == .success { Model.check(data.read() == 1, "a signal without its data") }
        results.append(result)
      }
      Model.thread("patient") { semaphore.wait() }
      Model.thread("signaller") {
        data.write(1)
        semaphore.signal()
        semaphore.signal()
      }
      Model.thread("clock") { Model.advance(nanoseconds: 2_000) }
      Model.run()
      let isLeft = semaphore.wait(until: .immediate) == .success
      Model.check(isLeft == (results.entries == [.timedOut]), "\(results.entries), left: \(isLeft)")
    }

    @Test func timeoutsOfSemaphores() {
      expectComplete(
        Model.explore("a semaphore's timeout against signals", bound: 1, allowTime: true) {
          Self.timeoutAgainstSignal()
        })
      expectFound(
        PlantedFault(.noWake, "DispatchSemaphore", "deliver()"),
        PlantedFault(.noWrite, "DispatchSemaphore", "withdraw()"),
        PlantedFault(.noWrite, "DispatchSemaphore", "sleep(until:)"),
        PlantedFault(.relaxed, "DispatchSemaphore", "takeGrant()"), allowTime: true
      ) { Self.timeoutAgainstSignal() }
    }

    // MARK: Once

    private static func onceFromThreeThreads() {
      let once = DispatchOnce()
      let value = Model.Cell(0, "value")
      for name in ["one", "two", "three"] {
        Model.thread(name) {
          once.perform { value.change { $0 += 1 } }
          Model.check(value.read() == 1, "the body ran \(value.read()) times")
        }
      }
      Model.run()
    }

    @Test func onceBodies() {
      expectComplete(Model.explore("once from three threads", bound: 2) { Self.onceFromThreeThreads() })
      expectFound(
        PlantedFault(.noWake, "DispatchOnce", "performSlowly(_:)"),
        PlantedFault(.noWrite, "DispatchOnce", "performSlowly(_:)"),
        PlantedFault(.relaxed, "DispatchOnce", "performSlowly(_:)"),
        PlantedFault(.relaxed, "DispatchOnce", "perform(_:)")
      ) { Self.onceFromThreeThreads() }
    }
  }
}
