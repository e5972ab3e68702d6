import Testing

@testable import ConcourseModel

/// Whether the explorer visits the number of schedules that theory predicts.
extension ModelSuite {
  @Suite struct Explorer {
    /// Two threads of two steps each, on one word or on two.
    private func twoByTwo(sameWord: Bool, bound: Int, reduce: Model.Reduction) -> ModelResult {
      Model.explore("two by two", bound: bound, early: false, reduce: reduce) {
        let first = Box(0)
        let second = sameWord ? first : Box(0)
        for (name, box) in [("left", first), ("right", second)] {
          Model.thread(name) {
            // ORDERING: relaxed; only the number of steps matters.
            box.word.wrappingAdd(1, ordering: .relaxed)
            box.word.wrappingAdd(1, ordering: .relaxed)
          }
        }
        Model.run()
        // ORDERING: relaxed; all threads have finished.
        let sum = first.word.load(ordering: .relaxed)
        Model.check(sum == (sameWord ? 4 : 2), "the sum is \(sum)")
      }
    }

    @Test func visitsEveryInterleavingOnce() {
      // Interleavings of two sequences of two steps: 4! / (2! · 2!).
      let all = twoByTwo(sameWord: true, bound: 9, reduce: [])
      #expect(all.failure == nil && all.isComplete)
      #expect(all.executions == 6)
    }

    @Test(arguments: [(0, 2), (1, 4), (2, 6), (3, 6)])
    func countsPreemptions(bound: Int, expected: Int) {
      // LLRR RRLL cost nothing, LRRL RLLR one, LRLR RLRL two.
      let some = twoByTwo(sameWord: true, bound: bound, reduce: [])
      #expect(some.executions == expected)
    }

    @Test func recognisesIndependentSteps() {
      func fourSteps(sameWord: Bool, reduce: Model.Reduction) -> ModelResult {
        Model.explore("four steps", bound: 9, early: false, reduce: reduce) {
          let first = Box(0)
          let second = sameWord ? first : Box(0)
          for (name, box) in [("left", first), ("right", second)] {
            // ORDERING: relaxed; only the number of steps matters.
            Model.thread(name) { for _ in 0..<4 { box.word.wrappingAdd(1, ordering: .relaxed) } }
          }
          Model.run()
        }
      }
      // 8! / (4! · 4!) interleavings; the steps depend on each other, so none is redundant.
      #expect(fourSteps(sameWord: true, reduce: []).executions == 70)
      let same = fourSteps(sameWord: true, reduce: .all)
      #expect(same.executions == 70 && same.pruned == 0)
      #expect(fourSteps(sameWord: false, reduce: []).executions == 70)
      let apart = fourSteps(sameWord: false, reduce: .states)
      #expect(apart.pruned > 0 && apart.executions < 50, "\(apart)")
      #expect(fourSteps(sameWord: false, reduce: .order).executions == 1)
    }

    @Test func visitsEveryOutcome() {
      // x = 1; r1 = y   against   y = 1; r2 = x: all outcomes but (0, 0).
      var outcomes: Set<[Int]> = []
      for reduce: Model.Reduction in [[], .states, .order, .all] {
        outcomes = []
        let result = Model.explore("store buffers", bound: 4, reduce: reduce) {
          let (x, y) = (Box(0), Box(0))
          let seen = Model.Log<(Int, Int)>()
          for (id, mine, theirs) in [(1, x, y), (2, y, x)] {
            Model.thread("\(id)") {
              // ORDERING: sequentially consistent: a single total order, so one of the two sees the other.
              mine.word.store(1, ordering: .sequentiallyConsistent)
              seen.append((id, theirs.word.load(ordering: .sequentiallyConsistent)))
            }
          }
          Model.run()
          outcomes.insert(seen.entries.sorted { $0.0 < $1.0 }.map(\.1))
        }
        #expect(result.failure == nil && result.isComplete)
        #expect(outcomes == [[0, 1], [1, 0], [1, 1]])
      }
    }

    @Test func stopsAtItsLimit() {
      let result = Model.explore("two by two, three runs", bound: 9, maxExecutions: 3, reduce: []) {
        let box = Box(0)
        for name in ["left", "right"] {
          // ORDERING: relaxed; only the number of steps matters.
          Model.thread(name) { for _ in 0..<2 { box.word.wrappingAdd(1, ordering: .relaxed) } }
        }
        Model.run()
      }
      #expect(result.executions == 3 && !result.isComplete && result.failure == nil)
    }

    @Test func backgroundThreadsMaySleepForEver() {
      let result = Model.explore("idle worker") {
        let box = Box<UInt32>(0)
        Model.background("worker") { _ = Futex.wait(box.word, expected: 0) }
        // ORDERING: relaxed; nothing is published.
        Model.thread("client") { box.word.store(0, ordering: .relaxed) }
        Model.run()
      }
      expectComplete(result)
    }

    /// A wake-up picks either of two sleepers, and the search does not take the two outcomes for one state.
    @Test func anySleeperMayBeWoken() {
      for reduce: Model.Reduction in [[], .states, .order, .all] {
        var firsts: Set<String> = []
        let result = Model.explore("two sleepers", bound: 0, stale: 0, reduce: reduce) {
          let gate = Box<UInt32>(0)
          let woken = Model.Log<String>()
          for name in ["left", "right"] {
            Model.background(name) {
              _ = Futex.wait(gate.word, expected: 0)
              woken.append(name)
            }
          }
          Model.run()
          Model.thread("waker") { Futex.wake(gate.word, count: 1) }
          Model.run()
          Model.check(woken.entries.count == 1, "\(woken.entries) woke")
          firsts.insert(woken.entries[0])
        }
        expectComplete(result)
        #expect(firsts == ["left", "right"])
      }
    }

    /// A sleeper that does not look again after it has woken.
    @Test func sleepersMayWakeForNothing() throws {
      func scenario(looksAgain: Bool) {
        let (gate, ready) = (Box<UInt32>(0), Model.Cell(false, "ready"))
        Model.thread("sleeper") {
          // ORDERING: sequentially consistent, as everything in the model.
          repeat {
            if gate.word.load(ordering: .sequentiallyConsistent) == 0 {
              _ = Futex.wait(gate.word, expected: 0)
            }
          } while looksAgain && gate.word.load(ordering: .sequentiallyConsistent) == 0
          Model.check(gate.word.load(ordering: .sequentiallyConsistent) == 1, "not open")
          _ = ready.read()
        }
        Model.thread("opener") {
          ready.write(true)
          // ORDERING: as above.
          gate.word.store(1, ordering: .sequentiallyConsistent)
          Futex.wake(gate.word, count: 1)
        }
        Model.run()
      }
      expectComplete(Model.explore("looks again") { scenario(looksAgain: true) })
      let result = Model.explore("looks once") { scenario(looksAgain: false) }
      let failure = try #require(result.failure, "\(result)")
      #expect(failure.kind == .check, "\(failure)")
      #expect(Model.replay(failure.schedule) { scenario(looksAgain: false) }?.kind == .check)
      expectComplete(
        Model.explore("looks once, kernel permitting", stale: 0) { scenario(looksAgain: false) })
    }

    @Test func virtualTimePassesOnlyWhenAllowed() {
      for allowTime in [true, false] {
        var sawTimeout = false
        let result = Model.explore("timeout", allowTime: allowTime, wakesForNothing: false) {
          let box = Box<UInt32>(0)
          Model.thread("sleeper") {
            let before = Clock.uptime()
            let outcome = Futex.wait(box.word, expected: 0, deadline: .uptime(before + 500))
            sawTimeout = outcome == .timedOut && Clock.uptime() == before + 500
          }
          Model.run()
        }
        #expect(result.failure?.kind == (allowTime ? nil : .timeNeeded), "\(result)")
        #expect(sawTimeout == allowTime)
      }
    }

    @Test func spinnersDoNotMultiplySchedules() {
      let result = Model.explore("spin until set", bound: 3) {
        let flag = Box(0)
        Model.thread("spinner") {
          // ORDERING: acquiring; pairs with the releasing store below.
          while flag.word.load(ordering: .acquiring) == 0 { Processor.pause() }
        }
        Model.thread("setter") { flag.word.store(1, ordering: .releasing) }
        Model.run()
      }
      #expect(result.failure == nil && result.isComplete && result.executions < 20, "\(result)")
    }

    @Test func spinningForNothingIsAFailure() {
      let result = Model.explore("spin for ever") {
        let flag = Box(0)
        Model.thread("spinner") {
          // ORDERING: relaxed; the store never happens.
          while flag.word.load(ordering: .relaxed) == 0 { Processor.pause() }
        }
        Model.run()
      }
      #expect(result.failure?.kind == .endless, "\(result)")
    }

    @Test func trapsEndTheExecutionOnly() {
      let result = Model.explore("trap") {
        Model.thread("culprit") { Trap.clientBug(999, "told you so") }
        Model.run()
      }
      #expect(result.failure?.kind == .trap)
      #expect(result.failure?.message.contains("told you so") == true)
    }

    @Test func schedulesCanBeWrittenDown() {
      let schedule = ModelSchedule([.thread(2, decision: 12), .store(1, step: 40)])
      #expect(schedule.description == "12:2 40~1")
      #expect(ModelSchedule(schedule.description) == schedule)
      #expect(ModelSchedule("1: 2") == nil)
    }
  }
}

/// A word that closures can share.
// SAFETY: Sendable because coroutines share one system thread.
final class Box<Value: AtomicRepresentable>: @unchecked Sendable {
  let word: ConcourseModel.Atomic<Value>
  init(_ value: Value) { word = ConcourseModel.Atomic(value) }
}
