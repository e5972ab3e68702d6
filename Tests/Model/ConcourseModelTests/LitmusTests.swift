import Testing

@testable import ConcourseModel

/// The memory: whether exactly the outcomes appear that `litmus.txt` allows.
extension ModelSuite {
  @Suite struct Litmus {
    /// Those that the model can run.
    private static let programs = LitmusProgram.all.filter { !$0.hasFences }

    @Test(arguments: programs)
    func exactlyTheAllowedOutcomes(_ program: LitmusProgram) {
      let found = program.explore()
      #expect(found == program.model)
      guard program.threadCount <= 2 else { return }
      #expect(program.explore(reduce: .states) == found, "a preemption was missing")
      #expect(program.explore(reduce: []) == found, "states were merged that differ")
      #expect(program.explore(.compareExchange) == found)
    }

    /// All that an Armv8 processor does appears in the model, and what RC11 does not allow appears only if it does.
    @Test(arguments: programs)
    func processorsStayWithinTheModel(_ program: LitmusProgram) {
      #expect(program.armv8.isSubset(of: program.model))
      // C++20 allows more than either.
      let isNewer = program.name == "RS+own-store"
      #expect(program.model.isSubset(of: program.rc11.union(program.armv8)) || isNewer)
    }

    /// A program whose orderings are ignored has the outcomes of the one without orderings.
    @Test(arguments: programs.filter(\.isRelaxed))
    func orderingsMatter(_ relaxed: LitmusProgram) {
      for program in Self.programs where program.shape == relaxed.shape {
        let found = program.explore(fault: PlantedFault(.relaxed, "LitmusProgram"))
        #expect(found == relaxed.model, "\(program.name)")
      }
    }

    // MARK: - Sleeping

    /// A wake-up orders nothing but the kernel's own look at the word: x = 1, y = 1, wake  |  wait on y, read x.
    @Test func aWakeUpPublishesNothing() {
      var outcomes: Set<[Int]> = []
      let result = Model.explore("futex", bound: 3, stale: 2) {
        let (x, y) = (Box(0), Box<UInt32>(0))
        var registers: [Int] = []
        Model.thread("waker") {
          x.word.store(1, ordering: .relaxed)
          y.word.store(1, ordering: .relaxed)
          Futex.wake(y.word, count: 1)
        }
        Model.thread("sleeper") {
          _ = Futex.wait(y.word, expected: 0)
          registers = [Int(y.word.load(ordering: .relaxed)), x.word.load(ordering: .relaxed)]
        }
        Model.run()
        outcomes.insert(registers)
      }
      // No execution sleeps forever.
      expectComplete(result)
      #expect(outcomes == [[0, 0], [0, 1], [1, 0], [1, 1]])
    }

    // MARK: - Making a word

    /// A thread that finds a new word through a relaxed store may find it unmade.
    @Test(arguments: [(AtomicStoreOrdering.relaxed, true), (.releasing, false)])
    func aNewWordMustBePublished(ordering: AtomicStoreOrdering, isRace: Bool) {
      let result = Model.explore("a new word") {
        let link = Box<UInt>(0)
        var made: Box<Int>?
        Model.thread("maker") {
          made = Box(0)
          link.word.store(1, ordering: ordering)
        }
        Model.thread("user") {
          if link.word.load(ordering: .acquiring) == 1 { _ = made!.word.load(ordering: .relaxed) }
        }
        Model.run()
      }
      #expect(result.failure?.kind == (isRace ? .race : nil), "\(result)")
    }

    @Test func aStaleLoadIsReplayed() throws {
      func scenario() {
        let (x, y) = (Box(0), Box(0))
        Model.thread("writer") {
          x.word.store(1, ordering: .relaxed)
          y.word.store(1, ordering: .relaxed)
        }
        Model.thread("reader") {
          if y.word.load(ordering: .relaxed) == 1 {
            Model.check(x.word.load(ordering: .relaxed) == 1, "the data is old")
          }
        }
        Model.run()
      }
      let failure = try #require(Model.explore("MP", scenario).failure)
      let written = try #require(ModelSchedule(failure.schedule.description))
      #expect(written.choices.contains { if case .store = $0 { true } else { false } })
      #expect(Model.replay(written, scenario)?.message == failure.message)
      #expect(Model.explore("MP", stale: 0, scenario).failure == nil)
      #expect(Model.random("MP", seed: 1, runs: 500, scenario).failure != nil)
    }
  }
}
