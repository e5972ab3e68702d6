// J. The parallel loop.

import Glibc
import Testing

#if CONCOURSE
  import ConcourseEvents
#else
  import Dispatch
#endif

/// Those of the machine, or those that Concourse is told to pretend.
private let processors: Int = {
  let pretended = getenv("CONCOURSE_TOPOLOGY").map { String(cString: $0) }
  return pretended.map { $0.split(separator: "x").reduce(1) { $0 * Int($1)! } }
    ?? Int(sysconf(Int32(_SC_NPROCESSORS_ONLN)))
}()

extension Conformance {
  @Suite("J. concurrentPerform")
  struct ConcurrentPerformTests {
    @Test("S76 each index is called once, and the call returns after the last")
    func eachIndexOnce() {
      for count in [1, 2, 3, 7, 64, 1_000, 20_000] {
        let calls = Shared([Int](repeating: 0, count: count))
        DispatchQueue.concurrentPerform(iterations: count) { index in
          calls.change { $0[index] += 1 }
        }
        #expect(calls.value.allSatisfy { $0 == 1 })
      }
    }

    @Test("S76 no iterations: the body is not called")
    func none() {
      let calls = Shared(0)
      DispatchQueue.concurrentPerform(iterations: 0) { _ in calls.increment() }
      #expect(calls.value == 0)
    }

    @Test("S77 a single iteration runs on the calling thread")
    func onCaller() {
      let caller = UInt(pthread_self())
      let ranOn = Shared(UInt(0))
      DispatchQueue.concurrentPerform(iterations: 1) { _ in ranOn.set(UInt(pthread_self())) }
      #expect(ranOn.value == caller)
    }

    @Test("S77 parallelism does not exceed the number of processors")
    func bounded() {
      let overlap = Overlap()
      DispatchQueue.concurrentPerform(iterations: 2_000) { _ in overlap.visit() }
      #expect(overlap.visits == 2_000)
      #expect(overlap.peak <= processors)
    }

    @Test("S77 nested loops complete and together do not exceed the processors")
    func nested() {
      let overlap = Overlap()
      DispatchQueue.concurrentPerform(iterations: 20) { _ in
        DispatchQueue.concurrentPerform(iterations: 50) { _ in overlap.visit() }
      }
      #expect(overlap.visits == 1_000)
      #expect(overlap.peak <= processors)
    }

    @Test("S79 a loop runs inside items of serial, concurrent and global queues")
    func insideItems() {
      let calls = Shared(0)
      let group = DispatchGroup()
      for queue in [
        DispatchQueue(label: "serial"), DispatchQueue(label: "concurrent", attributes: .concurrent),
        .global(), .global(qos: .background),
      ] {
        queue.async(group: group) {
          DispatchQueue.concurrentPerform(iterations: 100) { _ in calls.increment() }
        }
      }
      #expect(group.empties())
      #expect(calls.value == 400)
    }

    @Test("S76 uneven iterations are all done before the call returns")
    func uneven() {
      let sum = Shared(0)
      DispatchQueue.concurrentPerform(iterations: 100) { index in
        for _ in 0..<(index * 10) { sched_yield() }
        sum.change { $0 += index }
      }
      #expect(sum.value == 4_950)
    }

    #if CONCOURSE
      // Incumbent: does not return.
      @Test("S76 a negative count calls nothing")
      func negative() {
        let calls = Shared(0)
        DispatchQueue.concurrentPerform(iterations: -1) { _ in calls.increment() }
        DispatchQueue.concurrentPerform(iterations: .min) { _ in calls.increment() }
        #expect(calls.value == 0)
      }
    #endif
  }
}
