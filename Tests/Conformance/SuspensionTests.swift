// D. Suspend, resume, activate.

import Testing

#if CONCOURSE
  import ConcourseEvents
#else
  import Dispatch
#endif

extension Conformance {
  @Suite("D. Suspension and activation")
  struct SuspensionTests {
    @Test("S27 the running item completes, the next does not start before the resume")
    func betweenItems() {
      let queue = DispatchQueue(label: "suspended")
      let started = DispatchSemaphore(value: 0)
      let proceed = DispatchSemaphore(value: 0)
      let firstDone = DispatchSemaphore(value: 0)
      let secondDone = DispatchSemaphore(value: 0)
      let secondRan = Shared(false)
      let inTime = Shared(false)
      queue.async {
        started.signal()
        inTime.set(proceed.comes())
        firstDone.signal()
      }
      queue.async {
        secondRan.set(true)
        secondDone.signal()
      }
      #expect(started.comes())
      queue.suspend()
      proceed.signal()
      #expect(firstDone.comes())
      #expect(inTime.value)
      #expect(othersHadTheirTurn())
      #expect(!secondRan.value)
      queue.resume()
      #expect(secondDone.comes())
    }

    @Test("S27 an item may suspend its own queue")
    func fromWithin() {
      for attributes: DispatchQueue.Attributes in [[], .concurrent] {
        let queue = DispatchQueue(label: "own", attributes: attributes)
        let suspended = DispatchSemaphore(value: 0)
        let done = DispatchSemaphore(value: 0)
        let ran = Shared(false)
        queue.async(flags: .barrier) {
          queue.suspend()
          suspended.signal()
        }
        queue.async {
          ran.set(true)
          done.signal()
        }
        #expect(suspended.comes())
        #expect(othersHadTheirTurn())
        #expect(!ran.value)
        queue.resume()
        #expect(done.comes())
      }
    }

    @Test("S28 suspensions nest, each needs its own resume")
    func nesting() {
      let queue = DispatchQueue(label: "nested")
      let done = DispatchSemaphore(value: 0)
      let ran = Shared(false)
      for _ in 0..<1_000 { queue.suspend() }
      queue.async {
        ran.set(true)
        done.signal()
      }
      for _ in 0..<999 { queue.resume() }
      #expect(othersHadTheirTurn())
      #expect(!ran.value)
      queue.resume()
      #expect(done.comes())
    }

    @Test("S28 suspend and resume racing with submissions lose and reorder nothing")
    func racing() {
      let queue = DispatchQueue(label: "racing")
      let order = Shared([Int]())
      DispatchQueue.concurrentPerform(iterations: 2) { side in
        for index in 0..<2_000 {
          if side == 0 {
            queue.async { order.change { $0.append(index) } }
          } else {
            queue.suspend()
            queue.resume()
          }
        }
      }
      queue.sync {}
      #expect(order.value == Array(0..<2_000))
    }

    @Test("S30 activation is idempotent and a no-op on what has no such state")
    func idempotentActivation() {
      let queue = DispatchQueue(label: "active", attributes: .initiallyInactive)
      queue.activate()
      queue.activate()
      #expect(queue.sync { true })
      let group = DispatchGroup()
      group.activate()
      #expect(group.wait(timeout: .now()) == .success)
      let semaphore = DispatchSemaphore(value: 1)
      semaphore.activate()
      #expect(semaphore.wait(timeout: .now()) == .success)
      semaphore.signal()
      DispatchQueue.global().activate()
      DispatchQueue.main.activate()
    }

    @Test("S31 items submitted to an inactive queue wait for its activation, in order")
    func inactiveAsync() {
      let queue = DispatchQueue(label: "inactive", attributes: .initiallyInactive)
      let order = Shared([Int]())
      let group = DispatchGroup()
      for index in 0..<10 { queue.async(group: group) { order.change { $0.append(index) } } }
      #expect(othersHadTheirTurn())
      #expect(order.value.isEmpty)
      queue.activate()
      #expect(group.empties())
      #expect(order.value == Array(0..<10))
    }

    @Test("S31 a sync on an inactive queue blocks until its activation")
    func inactiveSync() {
      for attributes: DispatchQueue.Attributes in [
        .initiallyInactive, [.concurrent, .initiallyInactive],
      ] {
        let queue = DispatchQueue(label: "inactive", attributes: attributes)
        let activated = Shared(false)
        let aboutToSync = DispatchSemaphore(value: 0)
        let done = DispatchSemaphore(value: 0)
        let sawActivation = Shared(false)
        DispatchQueue(label: "caller").async {
          aboutToSync.signal()
          queue.sync { sawActivation.set(activated.value) }
          done.signal()
        }
        #expect(aboutToSync.comes())
        #expect(othersHadTheirTurn())
        activated.set(true)
        queue.activate()
        #expect(done.comes())
        #expect(sawActivation.value)
      }
    }

    @Test("S32 activating a suspended queue does not start it, the resume does")
    func activateWhileSuspended() {
      let queue = DispatchQueue(label: "both", attributes: .initiallyInactive)
      let done = DispatchSemaphore(value: 0)
      let ran = Shared(false)
      queue.async {
        ran.set(true)
        done.signal()
      }
      queue.suspend()
      queue.activate()
      #expect(othersHadTheirTurn())
      #expect(!ran.value)
      queue.resume()
      #expect(done.comes())
    }

    @Test("S34 suspend and resume are ignored, balanced or not, on objects without suspension")
    func ignored() {
      let global = DispatchQueue.global(qos: .utility)
      global.suspend()
      let done = DispatchSemaphore(value: 0)
      global.async { done.signal() }
      #expect(done.comes())
      global.resume()
      global.resume()
      DispatchQueue.main.resume()
      DispatchQueue.main.suspend()
      let group = DispatchGroup()
      group.suspend()
      group.resume()
      group.resume()
      global.async(group: group) {}
      #expect(group.empties())
      let semaphore = DispatchSemaphore(value: 0)
      semaphore.suspend()
      semaphore.resume()
      semaphore.resume()
      semaphore.signal()
      #expect(semaphore.comes())
    }

    @Test("S35 a sync on a suspended queue waits for the resume")
    func syncWaits() {
      for barrier in [false, true] {
        for attributes: DispatchQueue.Attributes in [[], .concurrent] {
          let queue = DispatchQueue(label: "suspended", attributes: attributes)
          let resumed = Shared(false)
          let aboutToSync = DispatchSemaphore(value: 0)
          let done = DispatchSemaphore(value: 0)
          let sawResume = Shared(false)
          queue.suspend()
          DispatchQueue(label: "caller").async {
            aboutToSync.signal()
            queue.sync(flags: barrier ? .barrier : []) { sawResume.set(resumed.value) }
            done.signal()
          }
          #expect(aboutToSync.comes())
          #expect(othersHadTheirTurn())
          resumed.set(true)
          queue.resume()
          #expect(done.comes())
          #expect(sawResume.value)
        }
      }
    }

    @Test("S35 after and group notifications aimed at a suspended queue are delivered on resume")
    func afterAndNotify() {
      let queue = DispatchQueue(label: "suspended")
      let passage = DispatchQueue(label: "passage")
      let group = DispatchGroup()
      let delivered = DispatchGroup()
      let count = Shared(0)
      queue.suspend()
      delivered.enter()
      delivered.enter()
      queue.asyncAfter(deadline: .now() + .milliseconds(1)) {
        count.increment()
        delivered.leave()
      }
      group.notify(queue: queue) {
        count.increment()
        delivered.leave()
      }
      // A later deadline elsewhere has come, so the earlier one has come too.
      let later = DispatchSemaphore(value: 0)
      passage.asyncAfter(deadline: .now() + .milliseconds(30)) { later.signal() }
      #expect(later.comes())
      #expect(othersHadTheirTurn())
      #expect(count.value == 0)
      queue.resume()
      #expect(delivered.empties())
      #expect(count.value == 2)
    }

    @Test("S35 suspending a target holds every queue above it")
    func suspendedTarget() {
      let target = DispatchQueue(label: "target")
      let queues = [
        DispatchQueue(label: "serial", target: target),
        DispatchQueue(label: "concurrent", attributes: .concurrent, target: target),
        DispatchQueue(label: "deep", target: DispatchQueue(label: "between", target: target)),
      ]
      let group = DispatchGroup()
      let count = Shared(0)
      target.suspend()
      for queue in queues { queue.async(group: group) { count.increment() } }
      #expect(othersHadTheirTurn())
      #expect(count.value == 0)
      target.resume()
      #expect(group.empties())
      #expect(count.value == 3)
    }
  }
}
