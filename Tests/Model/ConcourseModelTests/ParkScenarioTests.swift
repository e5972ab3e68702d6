import Testing

@testable import ConcourseModel

/// The pool's guarantee: every submitted item runs, although workers sleep, wait, start and end.
extension ModelSuite {
  @Suite struct Parking {
    /// Two producers, and workers that go to sleep between the posts.
    private static func postAgainstSleep() {
      Model.setProcessors(1)
      let log = Model.Log<String>()
      let queue = DispatchQueue.global()
      Model.thread("left") { queue.async { log.append("a") } }
      Model.thread("right") { queue.async { log.append("b") } }
      Model.run()
      Model.check(log.entries.sorted() == ["a", "b"], "only \(log.entries) ran")
    }

    @Test func postAgainstSleep() {
      expectComplete(Model.explore("post against sleep", bound: 2, freshBound: 3) { Self.postAgainstSleep() })
    }

    @Test func aMissingRecheckIsFound() throws {
      // After announcing that it sleeps, the worker sees the lists as they were before.
      let fault = PlantedFault(.stale, "WorkList", "isEmptyInTotalOrder")
      let result = Model.explore("post against sleep without the re-check", bound: 2, fault: fault) {
        Self.postAgainstSleep()
      }
      let failure = try #require(result.failure, "\(result)")
      #expect(failure.kind == .check, "\(failure)")
      #expect(failure.message.contains("ran"))
      let again = Model.replay(failure.schedule, fault: fault) { Self.postAgainstSleep() }
      #expect(again?.kind == failure.kind && again?.message == failure.message)
      // Without the fault, the same schedule succeeds.
      #expect(Model.replay(failure.schedule) { Self.postAgainstSleep() }?.kind != failure.kind)
    }

    @Test func aBlockedWorkerIsReplaced() {
      expectComplete(
        Model.explore("a blocked worker is replaced", bound: 1) {
          Model.setProcessors(1)
          let gate = DispatchSemaphore(value: 0)
          let log = Model.Log<String>()
          Model.thread("client") {
            DispatchQueue.global().async {
              gate.wait()
              log.append("waited")
            }
            DispatchQueue.global().async {
              log.append("opened")
              gate.signal()
            }
          }
          Model.run()
          Model.check(log.entries == ["opened", "waited"], "\(log.entries)")
        })
    }

    @Test func allProcessorsAreUsed() {
      expectComplete(
        Model.explore("two items that need each other", bound: 1) {
          Model.setProcessors(2)
          let (first, second) = (Box(false), Box(false))
          // Neither item blocks in a wait of the engine's, so two workers must have started both.
          for (mine, other) in [(first, second), (second, first)] {
            Model.thread("client") {
              DispatchQueue.global().async {
                // ORDERING: sequentially consistent; each announces itself before it checks the other.
                mine.word.store(true, ordering: .sequentiallyConsistent)
                while !other.word.load(ordering: .sequentiallyConsistent) { Processor.pause() }
              }
            }
          }
          Model.run()
          // ORDERING: relaxed; all coroutines are at rest.
          Model.check(
            first.word.load(ordering: .relaxed) && second.word.load(ordering: .relaxed), "one never began")
        })
    }

    @Test func aGroupWaitsForItsItems() {
      expectComplete(
        Model.explore("group", bound: 1, freshBound: 3) {
          let group = DispatchGroup()
          let ran = Model.Cell(0, "ran")
          Model.thread("client") {
            DispatchQueue.global().async(group: group) { ran.change { $0 += 1 } }
            group.wait()
            Model.check(ran.read() == 1, "the group did not wait")
          }
          Model.run()
        })
    }

    /// The last to leave passes on what the others did.
    @Test(arguments: [false, true]) func aGroupWaitsForAll(asItems: Bool) {
      expectComplete(
        Model.explore("a group of two", bound: asItems ? 1 : 2, stale: asItems ? 0 : 1) {
          let group = DispatchGroup()
          let ran = [Model.Cell(false, "left"), Model.Cell(false, "right")]
          for cell in ran {
            if asItems {
              DispatchQueue.global().async(group: group) { cell.write(true) }
            } else {
              group.enter()
              Model.thread("worker") {
                cell.write(true)
                group.leave()
              }
            }
          }
          Model.thread("waiter") {
            group.wait()
            Model.check(ran[0].read() && ran[1].read(), "the group did not wait")
          }
          Model.run()
        })
    }

    @Test func semaphorePair() {
      expectComplete(
        Model.explore("semaphore", bound: 3) {
          let free = DispatchSemaphore(value: 1)
          let section = Model.Section()
          for name in ["left", "right", "third"] {
            Model.thread(name) {
              free.wait()
              section.alone()
              free.signal()
            }
          }
          Model.run()
        })
    }

    /// Waiters whose deadlines have passed race with a signal that has counted one of them and not granted it yet.
    private static func lateWaiters(signals: Int) {
      let semaphore = DispatchSemaphore(value: 0)
      let results = Model.Log<DispatchTimeoutResult>()
      for name in ["left", "right"] {
        Model.thread(name) { results.append(semaphore.wait(until: .uptime(1))) }
      }
      for _ in 0..<signals { Model.thread("signaller") { semaphore.signal() } }
      Model.run()
      let taken = results.entries.filter { $0 == .success }.count
      Model.check(taken <= signals, "\(taken) waits succeeded")
      for _ in taken..<signals {
        Model.check(semaphore.wait(until: .immediate) == .success, "a signal was lost")
      }
      Model.check(semaphore.wait(until: .immediate) == .timedOut, "a signal was counted twice")
    }

    @Test(arguments: [1, 2]) func lateWaitersOfASemaphore(signals: Int) {
      expectComplete(
        Model.explore(
          "two late waiters, \(signals) signals", bound: 2, freshBound: 3, maxExecutions: 200_000
        ) { Self.lateWaiters(signals: signals) })
      // Both waiters take a grant in advance after three preemptions.
      expectNoFailure(
        Model.random("two late waiters, \(signals) signals", runs: 4_000, preemptions: 4, stale: 0) {
          Self.lateWaiters(signals: signals)
        })
    }

    @Test func aLateWaiterTakesNothingFromOthers() {
      expectComplete(
        Model.explore("a late waiter and a patient one", bound: 2, freshBound: 3) {
          let semaphore = DispatchSemaphore(value: 0)
          let section = Model.Section()
          Model.thread("late") {
            // A successful wait is undone by a signal.
            if semaphore.wait(until: .uptime(1)) == .success {
              section.alone()
              semaphore.signal()
            }
          }
          Model.thread("patient") {
            semaphore.wait()
            section.alone()
          }
          Model.thread("signaller") {
            section.alone()
            semaphore.signal()
          }
          Model.run()
          Model.check(semaphore.wait(until: .immediate) == .timedOut, "a signal was counted twice")
        })
    }

    private final class Signalled {
      let event = ThreadEvent()
      let data = Model.Cell(false, "data")
    }

    /// A signal that comes when a sleep has just timed out publishes what came before it, too.
    @Test func aLateSignalPublishes() {
      expectComplete(
        Model.explore("a signal at the deadline", bound: 2) {
          let shared = Signalled()
          Model.thread("waiter") {
            if shared.event.park(until: .uptime(1)) { Model.check(shared.data.read(), "no data") }
          }
          Model.thread("signaller") {
            shared.data.write(true)
            shared.event.signal()
          }
          Model.run()
        })
    }
  }
}
