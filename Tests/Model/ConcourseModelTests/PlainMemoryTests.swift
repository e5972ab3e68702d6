import Testing

@testable import ConcourseModel

/// Whether unordered accesses of plain memory are found, whatever the interleaving.
extension ModelSuite {
  @Suite struct PlainAccesses {
    /// One thread uses something and raises a flag; another sees the flag and uses it too.
    private func handOver(
      _ storing: AtomicStoreOrdering, _ make: @escaping () -> () -> Void
    ) -> ModelFailure.Kind? {
      Model.explore("hand over", stale: 0) {
        let use = make()
        let flag = Box(false)
        Model.thread("first") {
          use()
          // ORDERING: that of the test.
          flag.word.store(true, ordering: storing)
        }
        Model.thread("second") {
          // ORDERING: acquiring; pairs with the store if that releases.
          if flag.word.load(ordering: .acquiring) { use() }
        }
        Model.run()
      }.failure?.kind
    }

    @Test(arguments: [(AtomicStoreOrdering.releasing, false), (.relaxed, true)])
    func aSectionGuardsData(storing: AtomicStoreOrdering, isRace: Bool) {
      let kind = handOver(storing) {
        let section = Model.Section()
        return { section.alone() }
      }
      #expect(kind == (isRace ? .race : nil))
    }

    @Test(arguments: [(AtomicStoreOrdering.releasing, false), (.relaxed, true)])
    func marksOfTheEngine(storing: AtomicStoreOrdering, isRace: Bool) {
      let kind = handOver(storing) {
        let word = Box(0)
        return { PlainMemory.writes(beside: word.word) }
      }
      #expect(kind == (isRace ? .race : nil))
    }

    @Test func readersDoNotRace() {
      let kind = handOver(.relaxed) {
        let section = Model.Section()
        return { section.together() }
      }
      #expect(kind == nil)
    }

    /// A thread that follows a change sees it; another may see the old value.
    @Test(arguments: [(AtomicStoreOrdering.releasing, false), (.relaxed, true)])
    func aSeldomChangedValueMayBeOld(storing: AtomicStoreOrdering, mayBeOld: Bool) {
      var seen: Set<UInt16> = []
      let result = Model.explore("seldom changed") {
        let (shared, flag) = (Shared(), Box(false))
        Model.thread("writer") {
          shared.value.value = 2
          // ORDERING: that of the test.
          flag.word.store(true, ordering: storing)
        }
        Model.thread("reader") {
          // ORDERING: acquiring; pairs with the store if that releases.
          if flag.word.load(ordering: .acquiring) { seen.insert(shared.value.value) }
        }
        Model.run()
      }
      expectComplete(result)
      #expect(seen == (mayBeOld ? [1, 2] : [2]))
    }

    /// Another thread may come between a look at it and the step before.
    @Test func aLookAtASeldomChangedValueIsAStep() {
      var seen: Set<UInt16> = []
      let result = Model.explore("a look is a step", bound: 1, stale: 0) {
        let (shared, flag) = (Shared(), Box(false))
        Model.thread("reader") {
          // ORDERING: relaxed, here and below; all loads see the newest stores.
          flag.word.store(true, ordering: .relaxed)
          seen.insert(shared.value.value)
        }
        Model.thread("writer") { if flag.word.load(ordering: .relaxed) { shared.value.value = 2 } }
        Model.run()
      }
      expectComplete(result)
      #expect(seen == [1, 2])
    }
  }
}

// SAFETY: Sendable because coroutines share one system thread.
private final class Shared: @unchecked Sendable {
  let value = SeldomChanged<UInt16>(1)
}
