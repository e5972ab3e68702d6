// N. Sources of user data.

import Testing

#if CONCOURSE
  import ConcourseEvents
#else
  import Dispatch
#endif

extension Conformance {
  @Suite("N. User data sources")
  struct UserDataSourceTests {
    private let queue = DispatchQueue(label: "user data")

    @Test("S106 data-add sums between handler calls")
    func add() {
      let calls = Calls()
      let source = DispatchSource.makeUserDataAddSource(queue: queue)
      source.setEventHandler { calls.record(source.data) }
      source.activate()
      source.suspend()
      for value: UInt in 1...10 { source.add(data: value) }
      source.resume()
      #expect(calls.comes())
      source.add(data: 7)
      #expect(calls.comes())
      #expect(retire(source))
      #expect(calls.data == [55, 7])
    }

    @Test("S106 data-or unites between handler calls")
    func or() {
      let calls = Calls()
      let source = DispatchSource.makeUserDataOrSource(queue: queue)
      source.setEventHandler { calls.record(source.data) }
      source.activate()
      source.suspend()
      for value: UInt in [1, 4, 5, 1 << 40, 4] { source.or(data: value) }
      source.resume()
      #expect(calls.comes())
      source.or(data: 2)
      #expect(calls.comes())
      #expect(retire(source))
      #expect(calls.data == [5 | 1 << 40, 2])
    }

    @Test("S106 data-replace keeps the last value between handler calls")
    func replace() {
      let calls = Calls()
      let source = DispatchSource.makeUserDataReplaceSource(queue: queue)
      source.setEventHandler { calls.record(source.data) }
      source.activate()
      source.suspend()
      for value: UInt in [9, 1, .max, 3] { source.replace(data: value) }
      source.resume()
      #expect(calls.comes())
      source.replace(data: .max)
      #expect(calls.comes())
      #expect(retire(source))
      #expect(calls.data == [3, .max])
    }

    @Test("S106 values merged before activation are delivered afterwards in one call")
    func beforeActivation() throws {
      let adding = DispatchSource.makeUserDataAddSource(queue: queue)
      let uniting = DispatchSource.makeUserDataOrSource(queue: queue)
      let replacing = DispatchSource.makeUserDataReplaceSource(queue: queue)
      let calls = [Calls(), Calls(), Calls()]
      adding.setEventHandler { calls[0].record(adding.data) }
      uniting.setEventHandler { calls[1].record(uniting.data) }
      replacing.setEventHandler { calls[2].record(replacing.data) }
      for value: UInt in [4, 6] {
        adding.add(data: value)
        uniting.or(data: value)
        replacing.replace(data: value)
      }
      #expect(kernelHadItsTurn())
      for index in 0..<3 { #expect(calls[index].count == 0) }
      adding.activate()
      uniting.activate()
      replacing.activate()
      for index in 0..<3 { #expect(calls[index].comes()) }
      #expect(retire(adding))
      #expect(retire(uniting))
      #expect(retire(replacing))
      #expect(calls.map(\.data) == [[10], [6], [6]])
    }

    @Test("S106 sums from many threads are complete")
    func manyThreads() {
      let calls = Calls()
      let source = DispatchSource.makeUserDataAddSource(queue: queue)
      source.setEventHandler { calls.record(source.data) }
      source.activate()
      DispatchQueue.concurrentPerform(iterations: 4) { [source = object(source)] thread in
        for _ in 0..<5_000 { source.add(data: UInt(thread + 1)) }
      }
      #expect(calls.reaches(50_000))
      #expect(retire(source))
      #expect(calls.sum == 50_000)
      #expect(!calls.data.contains(0))
    }

    @Test("S106 a handler that merges into its own source is called again")
    func fromTheHandler() {
      let calls = Calls()
      let source = DispatchSource.makeUserDataAddSource(queue: queue)
      source.setEventHandler {
        if calls.count < 100 { source.add(data: 1) }
        calls.record(source.data)
      }
      source.activate()
      source.add(data: 1)
      #expect(calls.reaches(101))
      #expect(retire(source))
      #expect(calls.data == Array(repeating: 1, count: 101))
    }

    @Test("S107 a pending value of zero never causes a call")
    func zero() throws {
      let calls = Calls()
      let adding = DispatchSource.makeUserDataAddSource(queue: queue)
      let uniting = DispatchSource.makeUserDataOrSource(queue: queue)
      let replacing = DispatchSource.makeUserDataReplaceSource(queue: queue)
      adding.setEventHandler { calls.record(adding.data) }
      uniting.setEventHandler { calls.record(uniting.data) }
      replacing.setEventHandler { calls.record(replacing.data) }
      adding.activate()
      uniting.activate()
      replacing.activate()
      adding.add(data: 0)
      uniting.or(data: 0)
      replacing.replace(data: 0)
      #expect(othersHadTheirTurn())
      adding.suspend()
      adding.add(data: .max)
      adding.add(data: 1)
      adding.resume()
      replacing.suspend()
      replacing.replace(data: 5)
      replacing.replace(data: 0)
      replacing.resume()
      #expect(kernelHadItsTurn())
      #expect(calls.count == 0)
      adding.add(data: 3)
      #expect(calls.comes())
      #expect(retire(adding))
      #expect(retire(uniting))
      #expect(retire(replacing))
      #expect(calls.data == [3])
    }

    @Test("S107 merging after cancel is ignored")
    func afterCancel() throws {
      let calls = Calls()
      let source = DispatchSource.makeUserDataAddSource(queue: queue)
      source.setEventHandler { calls.record(source.data) }
      source.activate()
      #expect(retire(source))
      source.add(data: 1)
      #expect(kernelHadItsTurn())
      #expect(calls.count == 0)
    }

    @Test("S106 a source cancelled while threads merge calls its cancel handler once, and nothing after it")
    func cancelRace() {
      for _ in 0..<50 {
        let cancelled = Shared(0)
        let late = Shared(0)
        let done = DispatchSemaphore(value: 0)
        let source = DispatchSource.makeUserDataAddSource()
        source.setEventHandler { if cancelled.value > 0 { late.increment() } }
        source.setCancelHandler {
          cancelled.increment()
          done.signal()
        }
        source.activate()
        DispatchQueue.concurrentPerform(iterations: 3) { [source = object(source)] thread in
          for index in 0..<100 {
            if thread == 0 && index == 50 { source.cancel() }
            source.add(data: 1)
          }
        }
        #expect(done.comes())
        #expect(cancelled.value == 1)
        #expect(late.value == 0)
      }
    }
  }
}
