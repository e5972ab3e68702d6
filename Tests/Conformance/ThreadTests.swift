// R. Threads.

import Glibc
import Testing

#if CONCOURSE
  import ConcourseEvents
#else
  import Dispatch
#endif

extension Conformance {
  @Suite("R. Threads")
  struct ThreadTests {
    @Test("S143 six items of a global queue that wait for a seventh all finish")
    func waitingForTheSeventh() {
      let gate = DispatchSemaphore(value: 0)
      let group = DispatchGroup()
      let passed = Shared(0)
      for _ in 0..<6 {
        DispatchQueue.global().async(group: group) {
          if gate.comes() { passed.increment() }
        }
      }
      DispatchQueue.global().async(group: group) {
        for _ in 0..<6 { gate.signal() }
      }
      #expect(group.empties())
      #expect(passed.value == 6)
    }

    @Test("S143 serial queues blocked on one another's later items all finish")
    func blockedSerialQueues() {
      let count = 16
      let gates = (0...count).map { _ in DispatchSemaphore(value: 0) }
      let group = DispatchGroup()
      let passed = Shared(0)
      for index in 0..<count {
        DispatchQueue(label: "blocked \(index)").async(group: group) {
          if gates[index + 1].comes() { passed.increment() }
          gates[index].signal()
        }
      }
      DispatchQueue(label: "last").async(group: group) { gates[count].signal() }
      #expect(group.empties())
      #expect(passed.value == count)
      #expect(gates[0].comes())
    }

    @Test("S147 items of one queue may run on different threads")
    func identityWithinQueue() {
      let queue = DispatchQueue(label: "queue")
      let worker = Shared(UInt(0))
      let done = DispatchSemaphore(value: 0)
      queue.async {
        worker.set(UInt(pthread_self()))
        done.signal()
      }
      // Waiting here keeps this thread from running the item.
      #expect(done.comes())
      let caller = queue.sync { UInt(pthread_self()) }
      #expect(caller == UInt(pthread_self()))
      #expect(worker.value != caller)
    }

    @Test("S147 the current queue does not carry over to the next item on the thread")
    func currentQueueDoesNotLeak() {
      let key = DispatchSpecificKey<Int>()
      let marked = DispatchQueue(label: "marked")
      let plain = DispatchQueue(label: "plain")
      marked.setSpecific(key: key, value: 1)
      let group = DispatchGroup()
      let wrong = Shared(0)
      for _ in 0..<500 {
        marked.async(group: group) {
          if DispatchQueue.getSpecific(key: key) != 1 { wrong.increment() }
        }
        plain.async(group: group) {
          if DispatchQueue.getSpecific(key: key) != nil { wrong.increment() }
        }
        DispatchQueue.global().async(group: group) {
          if DispatchQueue.getSpecific(key: key) != nil { wrong.increment() }
        }
      }
      #expect(group.empties())
      #expect(wrong.value == 0)
    }
  }
}
