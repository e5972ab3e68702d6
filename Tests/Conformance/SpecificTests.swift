// Q. Queue-specific values and assertions.

import Testing

#if CONCOURSE
  import ConcourseEvents
#else
  import Dispatch
#endif

extension Conformance {
  @Suite("Q. Specifics and assertions")
  struct SpecificTests {
    private let key = DispatchSpecificKey<String>()

    @Test("S136 a value is found by key identity on exactly its queue")
    func lookup() {
      let other = DispatchSpecificKey<String>()
      let queue = DispatchQueue(label: "queue")
      let child = DispatchQueue(label: "child", target: queue)
      queue.setSpecific(key: key, value: "value")
      #expect(queue.getSpecific(key: key) == "value")
      #expect(queue.getSpecific(key: other) == nil)
      #expect(child.getSpecific(key: key) == nil)
      queue.setSpecific(key: key, value: "new")
      #expect(queue.getSpecific(key: key) == "new")
      queue.setSpecific(key: key, value: nil)
      #expect(queue.getSpecific(key: key) == nil)
    }

    @Test("S136 the current lookup starts at the running item's queue and walks its targets")
    func current() {
      let bottom = DispatchQueue(label: "bottom")
      let middle = DispatchQueue(label: "middle", attributes: .concurrent, target: bottom)
      let top = DispatchQueue(label: "top", target: middle)
      bottom.setSpecific(key: key, value: "bottom")
      let key = key
      #expect(top.sync { DispatchQueue.getSpecific(key: key) } == "bottom")
      middle.setSpecific(key: key, value: "middle")
      #expect(top.sync { DispatchQueue.getSpecific(key: key) } == "middle")
      #expect(bottom.sync { DispatchQueue.getSpecific(key: key) } == "bottom")
      let found = Shared<String?>(nil)
      let done = DispatchSemaphore(value: 0)
      top.async {
        found.set(DispatchQueue.getSpecific(key: key))
        done.signal()
      }
      #expect(done.comes())
      #expect(found.value == "middle")
    }

    @Test("S136 the current lookup does not see synchronous submitters")
    func submitters() {
      let outer = DispatchQueue(label: "outer")
      let inner = DispatchQueue(label: "inner")
      outer.setSpecific(key: key, value: "outer")
      let key = key
      let found = outer.sync {
        (DispatchQueue.getSpecific(key: key), inner.sync { DispatchQueue.getSpecific(key: key) })
      }
      #expect(found.0 == "outer")
      #expect(found.1 == nil)
    }

    @Test("S136 with no current queue the result is nil")
    func noCurrentQueue() {
      let queue = DispatchQueue(label: "queue")
      queue.setSpecific(key: key, value: "value")
      #expect(DispatchQueue.getSpecific(key: key) == nil)
      let key = key
      queue.sync { _ = DispatchQueue.getSpecific(key: key) }
      #expect(DispatchQueue.getSpecific(key: key) == nil)
    }

    @Test("S137 replacing, clearing and the queue's death each release the old value")
    func release() {
      let gone = DispatchSemaphore(value: 0)
      let witnessKey = DispatchSpecificKey<Witness>()
      do {
        let queue = DispatchQueue(label: "queue")
        queue.setSpecific(key: witnessKey, value: Witness(gone: gone))
        #expect(gone.wait(timeout: .now()) == .timedOut)
        queue.setSpecific(key: witnessKey, value: Witness(gone: gone))
        #expect(gone.comes())
        queue.setSpecific(key: witnessKey, value: nil)
        #expect(gone.comes())
        queue.setSpecific(key: witnessKey, value: Witness(gone: gone))
        queue.sync {}
      }
      #expect(gone.comes())
    }

    @Test("S138 onQueue passes inside any item of the queue or of one that targets it")
    func onQueue() {
      let bottom = DispatchQueue(label: "bottom")
      let top = DispatchQueue(
        label: "top", target: DispatchQueue(label: "middle", attributes: .concurrent, target: bottom))
      let group = DispatchGroup()
      let passed = Shared(0)
      top.sync {
        dispatchPrecondition(condition: .onQueue(top))
        dispatchPrecondition(condition: .onQueue(bottom))
        passed.increment()
      }
      top.async(group: group) {
        dispatchPrecondition(condition: .onQueue(top))
        dispatchPrecondition(condition: .onQueue(bottom))
        passed.increment()
      }
      #expect(group.empties())
      #expect(passed.value == 2)
    }

    @Test("S138 onQueue passes inside items submitted synchronously from such an item")
    func onSubmittersQueue() {
      let first = DispatchQueue(label: "first")
      let second = DispatchQueue(label: "second")
      let third = DispatchQueue(label: "third", attributes: .concurrent)
      let passed = Shared(false)
      first.sync {
        second.sync {
          third.sync {
            dispatchPrecondition(condition: .onQueue(third))
            dispatchPrecondition(condition: .onQueue(second))
            dispatchPrecondition(condition: .onQueue(first))
            passed.set(true)
          }
        }
      }
      #expect(passed.value)
    }

    @Test("S138 asynchronous submission does not carry the submitter's identity")
    func asyncForgets() {
      let first = DispatchQueue(label: "first")
      let second = DispatchQueue(label: "second")
      let passed = DispatchSemaphore(value: 0)
      first.sync {
        second.async {
          dispatchPrecondition(condition: .notOnQueue(first))
          passed.signal()
        }
      }
      #expect(passed.comes())
    }

    @Test("S140 onQueueAsBarrier passes on serial queues and in barrier items")
    func asBarrier() {
      let serial = DispatchQueue(label: "serial")
      let concurrent = DispatchQueue(label: "concurrent", attributes: .concurrent)
      let group = DispatchGroup()
      let passed = Shared(0)
      serial.sync {
        dispatchPrecondition(condition: .onQueueAsBarrier(serial))
        passed.increment()
      }
      serial.async(group: group) {
        dispatchPrecondition(condition: .onQueueAsBarrier(serial))
        passed.increment()
      }
      concurrent.sync(flags: .barrier) {
        dispatchPrecondition(condition: .onQueueAsBarrier(concurrent))
        passed.increment()
      }
      concurrent.async(group: group, flags: .barrier) {
        dispatchPrecondition(condition: .onQueueAsBarrier(concurrent))
        passed.increment()
      }
      concurrent.async(
        group: group,
        execute: DispatchWorkItem(flags: .barrier) {
          dispatchPrecondition(condition: .onQueueAsBarrier(concurrent))
          passed.increment()
        })
      #expect(group.empties())
      #expect(passed.value == 5)
    }

    @Test("S141 notOnQueue passes wherever onQueue would trap")
    func notOnQueue() {
      let queue = DispatchQueue(label: "queue")
      let child = DispatchQueue(label: "child", target: queue)
      let stranger = DispatchQueue(label: "stranger")
      dispatchPrecondition(condition: .notOnQueue(queue))
      queue.sync { dispatchPrecondition(condition: .notOnQueue(child)) }
      stranger.sync { dispatchPrecondition(condition: .notOnQueue(queue)) }
      dispatchPrecondition(condition: .notOnQueue(queue))
      #expect(child.sync { true })
    }
  }
}
