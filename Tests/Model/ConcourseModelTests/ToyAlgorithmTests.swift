import Testing

@testable import ConcourseModel

/// Whether the explorer finds the classic mistakes and accepts their corrections.
extension ModelSuite {
  @Suite struct ToyAlgorithms {
    // MARK: - Locks

    /// Test-and-set, in one step or in two.
    private struct ToyLock: ~Copyable {
      let word = ConcourseModel.Atomic<UInt32>(0)
      let isBroken: Bool

      func lock() {
        while true {
          if isBroken {
            // ORDERING: sequentially consistent, but useless: another thread may run between the test and the set.
            if word.load(ordering: .sequentiallyConsistent) == 0 {
              word.store(1, ordering: .sequentiallyConsistent)
              return
            }
          } else if word.compareExchange(expected: 0, desired: 1, ordering: .acquiring).exchanged {
            return
          }
          Processor.pause()
        }
      }

      // ORDERING: releasing; pairs with the acquiring compare-exchange in `lock`.
      func unlock() { word.store(0, ordering: .releasing) }
    }

    // SAFETY: Sendable because coroutines share one system thread.
    private final class Guarded: @unchecked Sendable {
      let lock: ToyLock
      let section = Model.Section()
      let count = Model.Cell(0, "count")
      init(isBroken: Bool) { lock = ToyLock(isBroken: isBroken) }
    }

    private func lockScenario(isBroken: Bool) {
      let guarded = Guarded(isBroken: isBroken)
      for name in ["left", "right", "third"] {
        Model.thread(name) {
          guarded.lock.lock()
          guarded.section.alone { guarded.count.change { $0 += 1 } }
          guarded.lock.unlock()
        }
      }
      Model.run()
      Model.check(guarded.count.read() == 3, "a turn was lost")
    }

    @Test func aLockExcludes() {
      let result = Model.explore("lock") { lockScenario(isBroken: false) }
      expectComplete(result)
    }

    @Test func aBrokenLockIsFoundAndReplayed() throws {
      let result = Model.explore("broken lock") { lockScenario(isBroken: true) }
      let failure = try #require(result.failure)
      #expect(failure.kind == .check || failure.kind == .race)
      let again = Model.replay(failure.schedule) { lockScenario(isBroken: true) }
      #expect(again?.kind == failure.kind)
      #expect(again?.message == failure.message)
      #expect(again?.trace.isEmpty == false)
    }

    // MARK: - Orderings

    /// A word publishes a plain value.
    private func publish(_ storing: AtomicStoreOrdering) -> ModelResult {
      Model.explore("publish") {
        let value = Model.Cell(0, "value")
        let ready = Box(0)
        Model.thread("writer") {
          value.write(7)
          ready.word.store(1, ordering: storing)
        }
        Model.thread("reader") {
          // ORDERING: acquiring; pairs with the writer's store if that releases.
          if ready.word.load(ordering: .acquiring) == 1 {
            Model.check(value.read() == 7, "the value is not there")
          }
        }
        Model.run()
      }
    }

    @Test func publishingTakesARelease() {
      #expect(publish(.releasing).failure == nil)
      #expect(publish(.relaxed).failure?.kind == .race)
    }

    // MARK: - Post against sleep

    /// A producer posts one entry; a consumer sleeps if it sees none.
    private func postAgainstSleep(rechecks: Bool, timed: Bool = false) {
      let queue = Box(0)
      let bell = Box<UInt32>(0)
      let asleep = Box(false)
      Model.thread("consumer") {
        while true {
          // ORDERING: sequentially consistent, as below.
          if queue.word.load(ordering: .sequentiallyConsistent) > 0 { return }
          // ORDERING: sequentially consistent here and below; the announcement and the re-check race with the post and
          // the check (store, then load, on both sides).
          let ring = bell.word.load(ordering: .sequentiallyConsistent)
          asleep.word.store(true, ordering: .sequentiallyConsistent)
          if rechecks && queue.word.load(ordering: .sequentiallyConsistent) > 0 { return }
          _ = Futex.wait(bell.word, expected: ring, deadline: timed ? .uptime(Clock.uptime() + 9) : .never)
        }
      }
      Model.thread("producer") {
        // ORDERING: sequentially consistent; see the consumer.
        queue.word.wrappingAdd(1, ordering: .sequentiallyConsistent)
        if asleep.word.load(ordering: .sequentiallyConsistent) {
          bell.word.wrappingAdd(1, ordering: .sequentiallyConsistent)
          Futex.wake(bell.word, count: 1)
        }
      }
      Model.run()
    }

    @Test func aRecheckKeepsWakeUps() {
      let result = Model.explore("post against sleep", bound: 4) { postAgainstSleep(rechecks: true) }
      expectComplete(result)
    }

    @Test func aLostWakeUpIsFoundAndReplayed() throws {
      let result = Model.explore("lost wake-up") { postAgainstSleep(rechecks: false) }
      let failure = try #require(result.failure)
      #expect(failure.kind == .deadlock)
      let written = try #require(ModelSchedule(failure.schedule.description))
      let again = Model.replay(written) { postAgainstSleep(rechecks: false) }
      #expect(again?.kind == .deadlock)
      #expect(Model.replay(written) { postAgainstSleep(rechecks: true) }?.kind != .deadlock)
    }

    @Test func aTimeoutDoesNotHideALostWakeUp() {
      let hidden = Model.explore("hidden by a timeout") { postAgainstSleep(rechecks: false, timed: true) }
      #expect(hidden.failure?.kind == .timeNeeded, "\(hidden)")
    }

    @Test func seededFaultsAreFound() {
      let careless = Model.explore("sleeps regardless") {
        ModelFaults.futexSleepsRegardless = true
        postAgainstSleep(rechecks: true)
      }
      #expect(careless.failure?.kind == .deadlock, "\(careless)")
      let silent = Model.explore("wakes no thread") {
        ModelFaults.dropsWakes = true
        postAgainstSleep(rechecks: true)
      }
      #expect(silent.failure?.kind == .deadlock, "\(silent)")
      // Closures inside `postAgainstSleep` carry its name.
      let fault = PlantedFault(.stale, "ToyAlgorithmTests", "postAgainstSleep(rechecks:timed:)")
      let stale = Model.explore("stale re-check", fault: fault) {
        postAgainstSleep(rechecks: true)
      }
      #expect(stale.failure?.kind == .deadlock, "\(stale)")
    }

    @Test func randomRunsFindItAndReportTheirSeed() throws {
      let result = Model.random("lost wake-up", seed: 42, runs: 2_000) { postAgainstSleep(rechecks: false) }
      #expect(result.seed == 42)
      let failure = try #require(result.failure, "\(result)")
      #expect(failure.kind == .deadlock)
      let again = Model.random("lost wake-up", seed: 42, runs: 2_000) { postAgainstSleep(rechecks: false) }
      #expect(again.failure?.schedule == failure.schedule)
    }

    // MARK: - ABA: a pop that meets a node that left and came back

    /// Nodes 1 and 2 on a stack of indices; the head may carry a count of its changes.
    private func popTwice(counted: Bool) {
      // Low half: the index of the first node. High half: the number of changes of the head.
      let head = Box<UInt64>(1)
      let next = [Box<UInt64>(0), Box<UInt64>(2), Box<UInt64>(0)]
      let popped = Model.Log<UInt64>()

      func swing(_ seen: UInt64, to index: UInt64) -> Bool {
        let count = counted ? (seen >> 32) + 1 : 0
        // ORDERING: acquiring and releasing; pairs with itself. Each change of the head sees the earlier ones.
        return head.word.compareExchange(
          expected: seen, desired: count << 32 | index, ordering: .acquiringAndReleasing
        ).exchanged
      }
      func pop() -> UInt64 {
        while true {
          // ORDERING: acquiring; pairs with the releasing changes of head and links.
          let seen = head.word.load(ordering: .acquiring)
          let first = seen & 0xFFFF_FFFF
          if first == 0 { return 0 }
          if swing(seen, to: next[Int(first)].word.load(ordering: .acquiring)) { return first }
        }
      }
      func push(_ index: UInt64) {
        while true {
          // ORDERING: acquiring for the head, releasing for the link; as in `pop`.
          let seen = head.word.load(ordering: .acquiring)
          next[Int(index)].word.store(seen & 0xFFFF_FFFF, ordering: .releasing)
          if swing(seen, to: index) { return }
        }
      }
      Model.thread("slow") { popped.append(pop()) }
      Model.thread("quick") {
        let first = pop()
        popped.append(pop())
        if first != 0 { push(first) }
      }
      Model.run()
      while true {
        let left = pop()
        if left == 0 { break }
        popped.append(left)
      }
      let found = popped.entries.filter { $0 != 0 }.sorted()
      Model.check(found == [1, 2], "found \(found)")
    }

    @Test func anABAProblemIsFound() {
      let result = Model.explore("ABA") { popTwice(counted: false) }
      #expect(result.failure?.kind == .check, "\(result)")
    }

    @Test func aVersionCountPreventsIt() {
      let result = Model.explore("ABA with a count", bound: 3) { popTwice(counted: true) }
      expectComplete(result)
    }
  }
}
