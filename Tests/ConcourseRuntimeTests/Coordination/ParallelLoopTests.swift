import Testing

@testable import ConcourseRuntime

extension Engine {
  @Suite("concurrentPerform")
  struct ParallelLoopTests {
    @Test("S76 each index once, whatever the count", arguments: [1, 2, 3, 7, 64, 1000, 100_003])
    func eachOnce(count: Int) {
      let visits = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: count)
      visits.initialize(repeating: 0)
      defer { visits.deallocate() }
      // SAFETY: one iteration writes each index, and the loop ends before the read.
      nonisolated(unsafe) let cells = visits
      DispatchQueue.concurrentPerform(iterations: count) { index in cells[index] += 1 }
      #expect(visits.allSatisfy { $0 == 1 })
    }

    @Test("S76 zero and negative counts", arguments: [0, -1, -1000, Int.min])
    func none(count: Int) {
      let calls = Tally()
      DispatchQueue.concurrentPerform(iterations: count) { _ in calls.add() }
      #expect(calls.value == 0)
    }

    @Test("S76 a huge count with an empty body")
    func huge() {
      let count = Sanitizer.shrunk(10_000_000)
      let sum = Tally()
      DispatchQueue.concurrentPerform(iterations: count) { index in
        if index % 1_000_000 == 999_999 || index == count - 1 { sum.add(index) }
      }
      let expected = (0..<count).lazy.filter { $0 % 1_000_000 == 999_999 || $0 == count - 1 }.reduce(0, +)
      #expect(sum.value == expected)
    }

    @Test("S77 loops nested three deep: each index of each loop once")
    func nested() {
      let calls = Tally()
      DispatchQueue.concurrentPerform(iterations: 10) { _ in
        DispatchQueue.concurrentPerform(iterations: 10) { _ in
          DispatchQueue.concurrentPerform(iterations: 10) { _ in calls.add() }
        }
      }
      #expect(calls.value == 1000)
    }

    @Test("loops from many threads and from items of every queue at once")
    func fromEverywhere() {
      let calls = Tally()
      let group = DispatchGroup()
      let serial = DispatchQueue(label: "serial")
      let concurrent = DispatchQueue(label: "concurrent", attributes: .concurrent)
      for _ in 0..<8 {
        for queue in [serial, concurrent, DispatchQueue.global(), .global(qos: .background)] {
          queue.async(group: group) {
            DispatchQueue.concurrentPerform(iterations: 100) { _ in calls.add() }
          }
        }
      }
      let ended = onThreads(4) { _ in
        DispatchQueue.concurrentPerform(iterations: 100) { _ in calls.add() }
      }
      #expect(ended && empties(group))
      #expect(calls.value == 8 * 4 * 100 + 4 * 100)
    }

    @Test("S80 iterations in a background item run in the background, on a global queue")
    func background() {
      let labels = Shared<Set<String>>([])
      let nice = Shared<Set<Int32>>([])
      let done = DispatchSemaphore(value: 0)
      DispatchQueue.global(qos: .background).async {
        DispatchQueue.concurrentPerform(iterations: 1000) { _ in
          labels.change { _ = $0.insert(DispatchQueue.currentLabel) }
          let own = threadNice()
          nice.change { _ = $0.insert(own) }
        }
        done.signal()
      }
      #expect(comes(done))
      #expect(labels.value == ["com.apple.root.background-qos"])
      #expect(nice.value == [min(threadNice() + 10, 19)])
    }

    @Test("S143 iterations of a loop outside the pool may wait for asynchronous items, in nested loops too")
    func waiting() {
      let late = Tally()
      let ended = onThreads(4) { _ in
        DispatchQueue.concurrentPerform(iterations: 3) { _ in
          DispatchQueue.concurrentPerform(iterations: 3) { _ in
            let done = DispatchSemaphore(value: 0)
            DispatchQueue.global().async { done.signal() }
            // If one of them is late, all are.
            if late.value > 0 || !comes(done) { late.add() }
          }
        }
      }
      #expect(ended)
      #expect(late.value == 0)
    }

    @Test("the writes of the iterations are visible when the loop returns")
    func visibility() {
      for round in 0..<200 {
        let cells = (0..<16).map { _ in Unprotected(-1) }
        DispatchQueue.concurrentPerform(iterations: 16) { cells[$0].value = round }
        #expect(cells.allSatisfy { $0.value == round })
      }
    }
  }
}
