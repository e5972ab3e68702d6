import Testing

@testable import ConcourseModel

/// Entries that a worker pushes without waking another worker, and workers that leave such entries to it. The model's
/// clock stands still while any coroutine can run, so all entries are short here.
extension ModelSuite {
  @Suite struct Deferring {
    /// Two processors, and a sleeping monitor: nothing is deferred without its thread.
    private static func begin() {
      Model.setProcessors(2)
      Runtime.shared.monitor.ensureStarted()
      Model.run()
    }

    @Test func aShortItemWakesNoOne() {
      expectComplete(
        // The monitor's tick does not end early.
        Model.explore("an item submits another", bound: 3, wakesForNothing: false) {
          Self.begin()
          let log = Model.Log<String>()
          let queue = DispatchQueue.global()
          Model.thread("client") {
            queue.async {
              queue.async { log.append("second") }
              log.append("first")
            }
          }
          Model.run()
          Model.check(log.entries == ["first", "second"], "\(log.entries)")
          Model.check(Runtime.shared.bands[0].counters.snapshot.threads == 1, "another worker was made")
        })
    }

    @Test func twoItemsAreWorkForTwoWorkers() {
      expectComplete(
        Model.explore("an item submits two that need each other", bound: 1, freshBound: 3) {
          Self.begin()
          let (first, second) = (Box(false), Box(false))
          let queue = DispatchQueue.global()
          Model.thread("client") {
            queue.async {
              for (mine, other) in [(first, second), (second, first)] {
                queue.async {
                  // ORDERING: sequentially consistent; each announces itself before it checks the other.
                  mine.word.store(true, ordering: .sequentiallyConsistent)
                  while !other.word.load(ordering: .sequentiallyConsistent) { Processor.pause() }
                }
              }
            }
          }
          Model.run()
          // ORDERING: relaxed; all coroutines are at rest.
          Model.check(
            first.word.load(ordering: .relaxed) && second.word.load(ordering: .relaxed), "one never began")
        })
    }

    /// A worker that was replaced while it waited, and is one too many when it comes back, parks without searching.
    @Test func theClockStopsForAWorkerThatStepsBack() {
      let result = Model.explore("a worker steps back", bound: 0) {
        Model.setProcessors(1)
        Runtime.shared.monitor.ensureStarted()
        Model.run()
        let (semaphore, parked) = (DispatchSemaphore(value: 0), Box(false))
        let queue = DispatchQueue.global()
        Model.thread("client") {
          queue.async {
            // Runs on another worker, and keeps it until this one has parked.
            queue.async {
              semaphore.signal()
              let worker = Runtime.shared.bands[0].workers.first { $0 != WorkerThread.current }!
              // ORDERING: acquiring; pairs with the exchange in `Band.park`, before which the clock has stopped.
              while worker.pointee.status.load(ordering: .acquiring) != WorkerRecord.Status.parked {
                Processor.pause()
              }
              // ORDERING: relaxed, both; everybody waits.
              let isMeasuring = worker.pointee.deferral.isMeasuring.load(ordering: .relaxed)
              parked.word.store(!isMeasuring, ordering: .relaxed)
            }
            semaphore.wait()
          }
        }
        Model.run()
        // ORDERING: relaxed; everybody has come to rest.
        Model.check(parked.word.load(ordering: .relaxed), "its sleep counts as an entry")
      }
      expectComplete(result)
    }

    /// Two items that each submit another, and a third: each of two workers assumes that the other will continue.
    private static func twoWorkersDefer() {
      Self.begin()
      let log = Model.Log<String>()
      let queue = DispatchQueue.global()
      Model.thread("client") {
        for _ in 0..<2 {
          queue.async {
            log.append("first")
            queue.async { log.append("next") }
          }
        }
        queue.async { log.append("last") }
      }
      Model.run()
      Model.check(log.entries.count == 5, "only \(log.entries) ran")
    }

    @Test func nothingIsLeftToAParkedWorker() {
      expectComplete(Model.explore("two workers, deferring", bound: 1) { Self.twoWorkersDefer() })
    }

    /// Items that wait, in a call unknown to the pool, for an item that they have submitted. The monitor goes to sleep
    /// before the second one.
    private static func waitForDeferred() {
      Self.begin()
      let (submitted, done, never) = (Gate(), Gate(), Gate())
      let queue = DispatchQueue.global()
      Model.thread("client") {
        for round in UInt32(1)...2 {
          queue.async {
            queue.async { submitted.reach(round) }
            // The worker sees the monitor awake.
            if round == 1 { Runtime.shared.monitor.watch() }
            submitted.wait(for: round)
            done.reach(round)
          }
          done.wait(for: round)
          never.wait(milliseconds: 50)
        }
      }
      Model.run()
    }

    @Test func theMonitorPostsADeferredItem() {
      expectComplete(
        Model.explore("an item waits for what it has deferred", bound: 0, allowTime: true) {
          Self.waitForDeferred()
        })
    }

    @Test func aMissingWatchIsFound() throws {
      // The worker believes that the monitor is still awake.
      let fault = PlantedFault(.stale, "Monitor", "watch()")
      let result = Model.random(
        "an item waits for what it has deferred, unwatched", seed: 42, runs: 2_000, allowTime: true,
        fault: fault
      ) {
        Self.waitForDeferred()
      }
      let failure = try #require(result.failure, "\(result)")
      #expect(failure.kind == .deadlock, "\(failure)")
    }
  }
}

/// A number that rises. Waiting for it is not a wait of the engine's.
private final class Gate: Sendable {
  private let word = ConcourseModel.Atomic<UInt32>(0)

  func reach(_ number: UInt32) {
    // ORDERING: sequentially consistent, as everything in the model.
    word.store(number, ordering: .sequentiallyConsistent)
    Futex.wake(word, count: .max)
  }

  func wait(for number: UInt32) {
    while true {
      // ORDERING: as above.
      let seen = word.load(ordering: .sequentiallyConsistent)
      if seen >= number { return }
      _ = Futex.wait(word, expected: seen)
    }
  }

  func wait(milliseconds: UInt64) {
    _ = Futex.wait(word, expected: 0, deadline: .uptime(Clock.uptime() + milliseconds * 1_000_000))
  }
}
