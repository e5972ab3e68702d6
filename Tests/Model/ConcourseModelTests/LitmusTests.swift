import Testing

@testable import ConcourseModel

/// The classic tests of memory models: whether exactly the outcomes appear that C11 allows for each ordering.
///
/// The names are those of the literature (Alglave, Maranget and Tautschnig, "Herding cats", 2014). `x` and `y` begin as
/// 0. An outcome is what the threads have read, then the final values, in the order of the comments. RC11 forbids
/// load buffering in any ordering, and so does the model, which makes the steps of a thread in order.
extension ModelSuite {
  @Suite struct Litmus {
    private typealias Word = Box<Int>

    /// The outcomes of threads that fill `count` registers, and of what they leave in words if `final` reads some.
    private func outcomes(
      _ name: String, _ count: Int, bound: Int = 4, alsoUnreduced: Bool = true,
      _ start: @escaping (_ set: @escaping (Int, Int) -> Void, _ x: Word, _ y: Word) -> Void,
      final: @escaping (_ x: Word, _ y: Word) -> [Int] = { _, _ in [] }
    ) -> Set<[Int]> {
      func explore(reduce: Model.Reduction) -> Set<[Int]> {
        var outcomes: Set<[Int]> = []
        let result = Model.explore(name, bound: bound, stale: 4, reduce: reduce) {
          // Each register is written by one thread, so its value follows from the thread's history.
          var registers = Array(repeating: -1, count: count)
          let (x, y) = (Word(0), Word(0))
          start({ registers[$0] = $1 }, x, y)
          Model.run()
          outcomes.insert(registers + final(x, y))
        }
        expectComplete(result)
        return outcomes
      }
      let reduced = explore(reduce: .all)
      if alsoUnreduced {
        #expect(reduced == explore(reduce: .states), "\(name): a preemption was missing")
        #expect(reduced == explore(reduce: []), "\(name): states were merged that differ")
      }
      return reduced
    }

    private func all(_ count: Int) -> Set<[Int]> {
      (0..<count).reduce([[]]) { rows, _ in Set(rows.flatMap { [$0 + [0], $0 + [1]] }) }
    }

    private static func last(_ x: Word, _ y: Word) -> [Int] {
      // ORDERING: relaxed; the threads have ended.
      [x.word.load(ordering: .relaxed), y.word.load(ordering: .relaxed)]
    }

    // MARK: - Two threads

    /// SB: x = 1, read y  |  y = 1, read x.
    @Test(arguments: [
      (AtomicStoreOrdering.relaxed, AtomicLoadOrdering.relaxed, true), (.releasing, .acquiring, true),
      (.sequentiallyConsistent, .acquiring, true), (.releasing, .sequentiallyConsistent, true),
      (.sequentiallyConsistent, .sequentiallyConsistent, false),
    ])
    func storeBuffering(store: AtomicStoreOrdering, load: AtomicLoadOrdering, isWeak: Bool) {
      let found = outcomes("SB", 2) { set, x, y in
        for (id, mine, theirs) in [(0, x, y), (1, y, x)] {
          Model.thread("\(id)") {
            // ORDERING: those of the test, here and in the other tests.
            mine.word.store(1, ordering: store)
            set(id, theirs.word.load(ordering: load))
          }
        }
      }
      #expect(found == (isWeak ? all(2) : all(2).subtracting([[0, 0]])))
    }

    /// SB with read-modify-writes in the place of loads: they read the last store before their own, which may be older
    /// than the other thread's.
    @Test(arguments: [
      (AtomicUpdateOrdering.acquiringAndReleasing, true), (.sequentiallyConsistent, false),
    ])
    func storeBufferingWithUpdates(ordering: AtomicUpdateOrdering, isWeak: Bool) {
      let found = outcomes("SB+rmws", 2) { set, x, y in
        for (id, mine, theirs) in [(0, x, y), (1, y, x)] {
          Model.thread("\(id)") {
            mine.word.store(1, ordering: .sequentiallyConsistent)
            set(id, theirs.word.wrappingAdd(0, ordering: ordering).oldValue)
          }
        }
      }
      #expect(found == (isWeak ? all(2) : all(2).subtracting([[0, 0]])))
    }

    /// SB where both sides change the same two words only by read-modify-writes: the order of a word's changes has no
    /// gap, so one side comes last.
    @Test func updatesOfTheSameWordHaveOneOrder() {
      let found = outcomes("rmws", 2) { set, x, _ in
        for id in 0..<2 {
          Model.thread("\(id)") { set(id, x.word.wrappingAdd(1, ordering: .relaxed).oldValue) }
        }
      }
      #expect(found == [[0, 1], [1, 0]])
    }

    /// MP: x = 1, y = 1  |  read y, read x.
    @Test(arguments: [
      (AtomicStoreOrdering.relaxed, AtomicLoadOrdering.relaxed, true), (.releasing, .relaxed, true),
      (.relaxed, .acquiring, true), (.releasing, .acquiring, false),
      (.sequentiallyConsistent, .sequentiallyConsistent, false),
    ])
    func messagePassing(store: AtomicStoreOrdering, load: AtomicLoadOrdering, isWeak: Bool) {
      let found = outcomes("MP", 2) { set, x, y in
        Model.thread("writer") {
          x.word.store(1, ordering: .relaxed)
          y.word.store(1, ordering: store)
        }
        Model.thread("reader") {
          set(0, y.word.load(ordering: load))
          set(1, x.word.load(ordering: .relaxed))
        }
      }
      #expect(found == (isWeak ? all(2) : all(2).subtracting([[1, 0]])))
    }

    /// MP whose data is sequentially consistent and whose flag is not: the order of the former says nothing about the
    /// latter.
    @Test func totalOrderIsNoFence() {
      let found = outcomes("MP+sc data", 2) { set, x, y in
        Model.thread("writer") {
          x.word.store(1, ordering: .sequentiallyConsistent)
          y.word.store(1, ordering: .relaxed)
        }
        Model.thread("reader") {
          set(0, y.word.load(ordering: .relaxed))
          set(1, x.word.load(ordering: .sequentiallyConsistent))
        }
      }
      #expect(found == all(2))
    }

    /// LB: read x, y = 1  |  read y, x = 1.
    @Test func loadBuffering() {
      let found = outcomes("LB", 2) { set, x, y in
        for (id, mine, theirs) in [(0, x, y), (1, y, x)] {
          Model.thread("\(id)") {
            set(id, mine.word.load(ordering: .relaxed))
            theirs.word.store(1, ordering: .relaxed)
          }
        }
      }
      #expect(found == all(2).subtracting([[1, 1]]))
    }

    /// 2+2W: x = 1, y = 2  |  y = 1, x = 2; the final x and y.
    @Test(arguments: [
      (AtomicStoreOrdering.relaxed, true), (.releasing, true), (.sequentiallyConsistent, false),
    ])
    func writesInBothOrders(ordering: AtomicStoreOrdering, isWeak: Bool) {
      let found = outcomes(
        "2+2W", 0,
        { _, x, y in
          for (first, second) in [(x, y), (y, x)] {
            Model.thread("writer") {
              first.word.store(1, ordering: ordering)
              second.word.store(2, ordering: ordering)
            }
          }
        }, final: Self.last)
      #expect(found == Set([[1, 2], [2, 1], [2, 2]] + (isWeak ? [[1, 1]] : [])))
    }

    /// R: x = 1, y = 1  |  y = 2, read x; the final y.
    @Test(arguments: [(false, true), (true, false)])
    func writeAgainstRead(isTotal: Bool, isWeak: Bool) {
      let found = outcomes(
        "R", 1,
        { set, x, y in
          Model.thread("left") {
            x.word.store(1, ordering: isTotal ? .sequentiallyConsistent : .releasing)
            y.word.store(1, ordering: isTotal ? .sequentiallyConsistent : .releasing)
          }
          Model.thread("right") {
            y.word.store(2, ordering: isTotal ? .sequentiallyConsistent : .releasing)
            set(0, x.word.load(ordering: isTotal ? .sequentiallyConsistent : .acquiring))
          }
        }, final: { [Self.last($0, $1)[1]] })
      #expect(found == Set([[0, 1], [1, 1], [1, 2]] + (isWeak ? [[0, 2]] : [])))
    }

    /// S: x = 2, y = 1  |  read y, x = 1; the final x.
    @Test(arguments: [
      (AtomicStoreOrdering.releasing, AtomicLoadOrdering.acquiring, false), (.relaxed, .acquiring, true),
      (.releasing, .relaxed, true),
    ])
    func writeAfterMessage(store: AtomicStoreOrdering, load: AtomicLoadOrdering, isWeak: Bool) {
      let found = outcomes(
        "S", 1,
        { set, x, y in
          Model.thread("left") {
            x.word.store(2, ordering: .relaxed)
            y.word.store(1, ordering: store)
          }
          Model.thread("right") {
            set(0, y.word.load(ordering: load))
            x.word.store(1, ordering: .relaxed)
          }
        }, final: { [Self.last($0, $1)[0]] })
      #expect(found == Set([[0, 1], [0, 2], [1, 1]] + (isWeak ? [[1, 2]] : [])))
    }

    // MARK: - More threads

    /// IRIW: x = 1  |  y = 1  |  read x, read y  |  read y, read x.
    @Test(arguments: [
      (AtomicStoreOrdering.relaxed, AtomicLoadOrdering.relaxed, true), (.releasing, .acquiring, true),
      (.sequentiallyConsistent, .acquiring, true), (.sequentiallyConsistent, .sequentiallyConsistent, false),
    ])
    func independentReads(store: AtomicStoreOrdering, load: AtomicLoadOrdering, isWeak: Bool) {
      let found = outcomes("IRIW", 4, alsoUnreduced: false) { set, x, y in
        for word in [x, y] { Model.thread("writer") { word.word.store(1, ordering: store) } }
        for (id, first, second) in [(0, x, y), (2, y, x)] {
          Model.thread("reader") {
            set(id, first.word.load(ordering: load))
            set(id + 1, second.word.load(ordering: load))
          }
        }
      }
      #expect(found == (isWeak ? all(4) : all(4).subtracting([[1, 0, 1, 0]])))
    }

    /// WRC: x = 1  |  read x, y = 1  |  read y, read x. That the second thread has read x is enough: what it passes on
    /// includes the order of that word.
    @Test(arguments: [
      (AtomicStoreOrdering.relaxed, AtomicLoadOrdering.relaxed, true), (.relaxed, .acquiring, true),
      (.releasing, .relaxed, true), (.releasing, .acquiring, false),
    ])
    func writeToReadCausality(store: AtomicStoreOrdering, load: AtomicLoadOrdering, isWeak: Bool) {
      let found = outcomes("WRC", 3, alsoUnreduced: false) { set, x, y in
        Model.thread("first") { x.word.store(1, ordering: .relaxed) }
        Model.thread("second") {
          set(0, x.word.load(ordering: .relaxed))
          y.word.store(1, ordering: store)
        }
        Model.thread("third") {
          set(1, y.word.load(ordering: load))
          set(2, x.word.load(ordering: .relaxed))
        }
      }
      #expect(found == (isWeak ? all(3) : all(3).subtracting([[1, 1, 0]])))
    }

    // MARK: - One word

    /// CoRR: x = 1  |  x = 2  |  read x twice. No reader sees the stores in an order in which another one does not.
    @Test func readsOfOneWordAgree() {
      let found = outcomes("CoRR", 4, bound: 3, alsoUnreduced: false) { set, x, _ in
        for value in 1...2 { Model.thread("writer") { x.word.store(value, ordering: .relaxed) } }
        for id in [0, 2] {
          Model.thread("reader") {
            set(id, x.word.load(ordering: .relaxed))
            set(id + 1, x.word.load(ordering: .relaxed))
          }
        }
      }
      let pairs = [0, 1, 2].flatMap { first in [0, 1, 2].map { [first, $0] } }.filter {
        $0[1] != 0 || $0[0] == 0
      }
      let crossed: Set<[Int]> = [[1, 2, 2, 1], [2, 1, 1, 2]]
      #expect(found == Set(pairs.flatMap { left in pairs.map { left + $0 } }).subtracting(crossed))
    }

    /// CoWR and CoRW: x = 1, read x  |  read x, x = 2; the final x.
    @Test func ownStoresAreSeen() {
      let found = outcomes(
        "CoWR", 2,
        { set, x, _ in
          Model.thread("left") {
            x.word.store(1, ordering: .relaxed)
            set(0, x.word.load(ordering: .relaxed))
          }
          Model.thread("right") {
            set(1, x.word.load(ordering: .relaxed))
            x.word.store(2, ordering: .relaxed)
          }
        }, final: { [Self.last($0, $1)[0]] })
      #expect(found == [[1, 0, 1], [1, 0, 2], [2, 0, 2], [1, 1, 2], [2, 1, 2]])
    }

    /// x = 1, y = 1 (releasing)  |  y = y + 1 or y = 2  |  read y (acquiring), read x. A read-modify-write continues
    /// the release sequence, a store of any thread ends it.
    @Test(arguments: ["update", "store", "own store"])
    func releaseSequence(_ between: String) {
      let found = outcomes("release sequence", 2, bound: 3, alsoUnreduced: false) { set, x, y in
        Model.thread("writer") {
          x.word.store(1, ordering: .relaxed)
          y.word.store(1, ordering: .releasing)
          if between == "own store" { y.word.store(2, ordering: .relaxed) }
        }
        Model.thread("between") {
          if between == "update" { y.word.wrappingAdd(1, ordering: .relaxed) }
          if between == "store" { y.word.store(2, ordering: .relaxed) }
        }
        Model.thread("reader") {
          set(0, y.word.load(ordering: .acquiring))
          set(1, x.word.load(ordering: .relaxed))
        }
      }
      // With an update, 1 may be its own (after 0) or the writer's.
      let weak: Set<[Int]> = between == "update" ? [[1, 0]] : [[2, 0]]
      #expect(found == Set([[0, 0], [0, 1], [1, 1], [2, 1]]).union(weak))
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
