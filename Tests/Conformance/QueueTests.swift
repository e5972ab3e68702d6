// A. Queues: order, exclusion, lifetime.

import Glibc
import Testing

#if CONCOURSE
  import ConcourseEvents
#else
  import Dispatch
#endif

extension Conformance {
  @Suite("A. Queues")
  struct QueueTests {
    private struct Refusal: Error, Equatable {
      let reason: Int
    }

    @Test("S1 a serial queue runs 100,000 asyncs of one thread in submission order")
    func serialOrder() {
      let queue = DispatchQueue(label: "order")
      let next = Shared(0)
      let misplaced = Shared(0)
      for index in 0..<100_000 {
        queue.async {
          next.change { next in
            if next != index { misplaced.increment() }
            next += 1
          }
        }
      }
      queue.sync {}
      #expect(next.value == 100_000)
      #expect(misplaced.value == 0)
    }

    @Test("S1 a sync submitted after two asyncs runs after both")
    func orderAcrossKinds() {
      let queue = DispatchQueue(label: "kinds")
      for _ in 0..<1_000 {
        let seen = Shared([Int]())
        queue.async { seen.change { $0.append(1) } }
        queue.async { seen.change { $0.append(2) } }
        queue.sync { seen.change { $0.append(3) } }
        #expect(seen.value == [1, 2, 3])
      }
    }

    @Test("S1 a serial queue never overlaps items of many submitters")
    func serialExclusion() {
      let queue = DispatchQueue(label: "exclusion")
      let overlap = Overlap()
      DispatchQueue.concurrentPerform(iterations: 8) { submitter in
        for index in 0..<200 {
          if (submitter + index).isMultiple(of: 2) {
            queue.async { overlap.visit() }
          } else {
            queue.sync { overlap.visit() }
          }
        }
      }
      queue.sync {}
      #expect(overlap.visits == 1_600)
      #expect(overlap.peak == 1)
    }

    @Test("S2 items of a concurrent queue overlap and finish in any order")
    func concurrentOverlap() {
      let queue = DispatchQueue(label: "concurrent", attributes: .concurrent)
      let group = DispatchGroup()
      let later = DispatchSemaphore(value: 0)
      let firstSawSecondFinish = Shared(false)
      queue.async(group: group) { firstSawSecondFinish.set(later.comes()) }
      queue.async(group: group) { later.signal() }
      #expect(group.empties())
      #expect(firstSawSecondFinish.value)
    }

    @Test("S3 a concurrent queue above a serial queue never overlaps items")
    func concurrentOverSerial() {
      let serial = DispatchQueue(label: "bottom")
      let middle = DispatchQueue(label: "middle", attributes: .concurrent, target: serial)
      let top = DispatchQueue(label: "top", attributes: .concurrent, target: middle)
      let overlap = Overlap()
      let group = DispatchGroup()
      for _ in 0..<1_000 {
        top.async(group: group) { overlap.visit() }
        middle.async(group: group) { overlap.visit() }
      }
      #expect(group.empties())
      #expect(overlap.visits == 2_000)
      #expect(overlap.peak == 1)
    }

    @Test("S4 two independent serial queues run at the same moment")
    func independentQueues() {
      let meeting = Meeting()
      let group = DispatchGroup()
      let met = Shared([Bool]())
      DispatchQueue(label: "left").async(group: group) {
        let success = meeting.meetAsFirst()
        met.change { $0.append(success) }
      }
      DispatchQueue(label: "right").async(group: group) {
        let success = meeting.meetAsSecond()
        met.change { $0.append(success) }
      }
      #expect(group.empties())
      #expect(met.value == [true, true])
    }

    @Test("S5 async returns without waiting for the item")
    func asyncReturns() {
      let queue = DispatchQueue(label: "returns")
      let asyncReturned = DispatchSemaphore(value: 0)
      let finished = DispatchSemaphore(value: 0)
      let inTime = Shared(false)
      queue.async {
        inTime.set(asyncReturned.comes())
        finished.signal()
      }
      asyncReturned.signal()
      #expect(finished.comes())
      #expect(inTime.value)
    }

    @Test("S5 an item runs although the last reference to its queue was dropped")
    func droppedQueue() {
      let group = DispatchGroup()
      let runs = Shared(0)
      for _ in 0..<200 {
        DispatchQueue(label: "dropped").async(group: group) { runs.increment() }
        DispatchQueue(label: "dropped", attributes: .concurrent)
          .async(group: group) { runs.increment() }
        DispatchQueue(label: "dropped", attributes: .concurrent)
          .async(group: group, flags: .barrier) { runs.increment() }
      }
      #expect(group.empties())
      #expect(runs.value == 600)
    }

    @Test("S5 a queue releases what its item captured once the item ran")
    func capturesReleased() {
      let gone = DispatchSemaphore(value: 0)
      let queue = DispatchQueue(label: "captures")
      do {
        let witness = Witness(gone: gone)
        queue.async { witness.remember() }
      }
      #expect(gone.comes())
    }

    @Test("S6 sync runs its item on the calling thread and returns when it is done")
    func syncOnCaller() {
      let caller = pthread_self()
      for queue in [
        DispatchQueue(label: "serial"), DispatchQueue(label: "concurrent", attributes: .concurrent),
        DispatchQueue(label: "child", target: DispatchQueue(label: "parent")), .global(),
      ] {
        var ranOn: pthread_t?
        queue.sync { ranOn = pthread_self() }
        #expect(ranOn == caller)
        ranOn = nil
        queue.sync(flags: .barrier) { ranOn = pthread_self() }
        #expect(ranOn == caller)
      }
    }

    @Test("S6 sync on a busy queue still runs on the calling thread, after the earlier items")
    func syncOnBusyQueue() {
      let queue = DispatchQueue(label: "busy")
      let helper = DispatchQueue(label: "helper")
      let caller = pthread_self()
      for _ in 0..<300 {
        let gate = DispatchSemaphore(value: 0)
        let earlier = Shared(false)
        queue.async { earlier.set(gate.comes()) }
        helper.async { gate.signal() }
        let observed = queue.sync { (thread: pthread_self(), earlierDone: earlier.value) }
        #expect(observed.thread == caller)
        #expect(observed.earlierDone)
      }
    }

    @Test("S9 a plain sync nested in a plain item of the same concurrent queue runs")
    func nestedSync() {
      let queue = DispatchQueue(label: "nested", attributes: .concurrent)
      let done = DispatchSemaphore(value: 0)
      let depth = Shared(0)
      queue.async {
        queue.sync { queue.sync { depth.set(2) } }
        done.signal()
      }
      #expect(done.comes())
      #expect(depth.value == 2)
    }

    @Test("S10 sync passes the result through")
    func syncResult() {
      let queue = DispatchQueue(label: "result")
      #expect(queue.sync { 42 } == 42)
      #expect(queue.sync { "text" } == "text")
      #expect(queue.sync(flags: []) { 43 } == 43)
      #expect(queue.sync(flags: .barrier) { 44 } == 44)
      let nothing: Int? = queue.sync { nil }
      #expect(nothing == nil)
    }

    @Test("S10 sync rethrows the error, and the queue goes on working")
    func syncError() {
      let queue = DispatchQueue(label: "error", attributes: .concurrent)
      #expect(throws: Refusal(reason: 1)) {
        try queue.sync { throw Refusal(reason: 1) }
      }
      #expect(throws: Refusal(reason: 2)) {
        try queue.sync(flags: .barrier) { throw Refusal(reason: 2) }
      }
      #expect(queue.sync { 7 } == 7)
      #expect(queue.sync(flags: .barrier) { 8 } == 8)
    }

    @Test("S13 a queue's label is the one it was created with, absent ones are empty")
    func labels() {
      var label = "com.example."
      label += "queue"
      let queue = DispatchQueue(label: label)
      label += ".changed"
      #expect(queue.label == "com.example.queue")
      #expect(DispatchQueue(label: "").label.isEmpty)
      #expect(DispatchQueue(label: "Grüße ✓").label == "Grüße ✓")
    }

    @Test("S13 the well-known labels")
    func wellKnownLabels() {
      #expect(DispatchQueue.main.label == "com.apple.main-thread")
      #expect(DispatchQueue.global(qos: .background).label == "com.apple.root.background-qos")
      #expect(DispatchQueue.global(qos: .utility).label == "com.apple.root.utility-qos")
      #expect(DispatchQueue.global().label == "com.apple.root.default-qos")
      #expect(DispatchQueue.global(qos: .userInitiated).label == "com.apple.root.user-initiated-qos")
    }

    #if CONCOURSE
      // Incumbent: traps for every flag set but none and exactly barrier.
      @Test("S10 sync takes every flag set")
      func syncFlags() {
        let queue = DispatchQueue(label: "flags", attributes: .concurrent)
        for bits: UInt in 0..<0x40 {
          let flags = DispatchWorkItemFlags(rawValue: bits)
          #expect(queue.sync(flags: flags) { bits } == bits)
          #expect(throws: Refusal(reason: 3)) {
            try queue.sync(flags: flags) { throw Refusal(reason: 3) }
          }
        }
      }

      // Not in the incumbent.
      @Test("S11 asyncAndWait waits, passes the result and rethrows")
      func asyncAndWaitResult() {
        let queue = DispatchQueue(label: "asyncAndWait")
        let before = Shared(false)
        queue.async { before.set(true) }
        #expect(queue.asyncAndWait { before.value })
        #expect(queue.asyncAndWait(flags: .barrier) { 5 } == 5)
        #expect(throws: Refusal(reason: 4)) {
          try queue.asyncAndWait { throw Refusal(reason: 4) }
        }
        let item = DispatchWorkItem { before.set(false) }
        queue.asyncAndWait(execute: item)
        #expect(!before.value)
      }

      @Test("S11 asyncAndWait on an idle queue runs on the caller")
      func asyncAndWaitOnCaller() {
        let caller = pthread_self()
        #expect(DispatchQueue(label: "idle").asyncAndWait { pthread_self() } == caller)
      }

      @Test("S11 the barrier form of asyncAndWait is exclusive")
      func asyncAndWaitBarrier() {
        let queue = DispatchQueue(label: "barrier", attributes: .concurrent)
        let group = DispatchGroup()
        let running = Shared(0)
        for _ in 0..<200 {
          for _ in 0..<4 {
            queue.async(group: group) {
              running.change { $0 += 1 }
              sched_yield()
              running.change { $0 -= 1 }
            }
          }
          #expect(queue.asyncAndWait(flags: .barrier) { running.value } == 0)
        }
        #expect(group.empties())
      }
    #endif
  }
}
