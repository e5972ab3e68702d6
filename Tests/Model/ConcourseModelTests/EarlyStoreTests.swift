import Testing

@testable import ConcourseModel

/// Load buffering in programs whose stores depend on their loads, which `litmus.txt` has not.
extension ModelSuite {
  @Suite struct EarlyStores {
    /// What a thread stores after it has loaded a value; nil for nothing.
    typealias Rule = @Sendable (Int) -> Int?

    /// Two threads load a word each and then store to the other's.
    /// - Returns: what they have loaded, in all executions.
    private func loads(_ left: @escaping Rule, _ right: @escaping Rule) -> Set<[Int]> {
      var outcomes: Set<[Int]> = []
      let result = Model.explore("load buffering", bound: 3, stale: 2, early: true) {
        let words = [Box(0), Box(0)]
        var loaded = [0, 0]
        for (id, rule) in [left, right].enumerated() {
          Model.thread("\(id)") {
            // ORDERING: relaxed, here and below; that is what the tests are about.
            loaded[id] = words[id].word.load(ordering: .relaxed)
            if let value = rule(loaded[id]) { words[1 - id].word.store(value, ordering: .relaxed) }
          }
        }
        Model.run()
        outcomes.insert(loaded)
      }
      expectComplete(result)
      return outcomes
    }

    @Test func aStoreWithoutDependenceGoesFirst() {
      #expect(loads({ _ in 1 }, { _ in 1 }) == [[0, 0], [0, 1], [1, 0], [1, 1]])
      // One of the two is enough.
      #expect(loads({ _ in 1 }, { $0 }) == [[0, 0], [0, 1], [1, 1]])
      #expect(loads({ $0 == 1 ? 1 : nil }, { _ in 1 }) == [[0, 0], [1, 0], [1, 1]])
    }

    @Test func noValueComesFromNowhere() {
      #expect(loads({ $0 }, { $0 }) == [[0, 0]])
      #expect(loads({ $0 == 1 ? 1 : nil }, { $0 == 1 ? 1 : nil }) == [[0, 0]])
    }

    /// The left thread cannot store 1 first and then load what makes it store 2.
    @Test func theStoreIsTheSameWhateverIsLoaded() {
      #expect(loads({ $0 == 0 ? 1 : 2 }, { _ in 1 }) == [[0, 0], [0, 1], [1, 0], [1, 2]])
      #expect(loads({ $0 == 0 ? 1 : nil }, { $0 }) == [[0, 0], [0, 1]])
    }

    /// The first thread tells what it has loaded, then lets the second one store that.
    private func witness(_ stores: @escaping Rule) -> () -> Void {
      {
        let (x, y, told) = (Box(0), Box(0), Box(0))
        Model.thread("first") {
          let loaded = x.word.load(ordering: .relaxed)
          told.word.store(loaded, ordering: .relaxed)
          if let value = stores(loaded) { y.word.store(value, ordering: .relaxed) }
        }
        Model.thread("second") {
          if y.word.load(ordering: .relaxed) == 1 { x.word.store(1, ordering: .relaxed) }
        }
        Model.thread("witness") {
          Model.check(told.word.load(ordering: .relaxed) == 0, "the load was overtaken")
        }
        Model.run()
      }
    }

    @Test func aFailureWithAnEarlyStoreIsReplayed() throws {
      let scenario = witness { _ in 1 }
      let failure = try #require(Model.explore("witness", bound: 3, early: true, scenario).failure)
      let written = try #require(ModelSchedule(failure.schedule.description))
      #expect(written == failure.schedule)
      #expect(written.choices.contains { if case .early = $0 { true } else { false } })
      #expect(Model.replay(written, scenario)?.message == failure.message)
      #expect(Model.explore("witness", bound: 3, stale: 0, early: true, scenario).failure == nil)
    }

    /// A failure between an early store and its place in the program counts only if the thread comes to that place.
    @Test func aFailureWithAStoreThatIsNeverMadeDoesNotCount() {
      expectComplete(Model.explore("witness", bound: 4, stale: 2, early: true, witness { $0 == 0 ? 1 : nil }))
    }

    @Test(arguments: [nil, WordBits(low: 6, high: 0)])
    func aScheduleTellsTheStore(read: WordBits?) throws {
      let store = EarlyStore(key: 0x4_8000_0001, rank: 2.5, bits: WordBits(low: 7, high: 1), read: read)
      #expect(try #require(EarlyStore(store.text[...])) == store)
      #expect(ModelSchedule("3!5,1.0") == nil && ModelSchedule("3!x,1.0,1") == nil)
    }
  }
}
