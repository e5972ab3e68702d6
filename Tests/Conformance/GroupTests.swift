// H. Groups.

import Testing

#if CONCOURSE
  import ConcourseEvents
#else
  import Dispatch
#endif

extension Conformance {
  @Suite("H. Groups")
  struct GroupTests {
    @Test("S64 an item submitted with a group leaves it after it returned")
    func asyncWithGroup() {
      let group = DispatchGroup()
      let queue = DispatchQueue(label: "members", attributes: .concurrent)
      let count = Shared(0)
      for index in 0..<500 {
        if index.isMultiple(of: 2) {
          queue.async(group: group) { count.increment() }
        } else {
          queue.async(group: group, execute: DispatchWorkItem { count.increment() })
        }
      }
      #expect(group.empties())
      #expect(count.value == 500)
    }

    @Test("S64 notify takes quality of service and flags, or a work item")
    func notifyForms() {
      let group = DispatchGroup()
      let queue = DispatchQueue(label: "notify", attributes: .concurrent)
      let fired = DispatchSemaphore(value: 0)
      group.enter()
      group.notify(qos: .utility, flags: .barrier, queue: queue) { fired.signal() }
      let item = DispatchWorkItem { fired.signal() }
      group.notify(queue: queue, work: item)
      #expect(fired.wait(timeout: .now()) == .timedOut)
      group.leave()
      #expect(fired.comes())
      #expect(fired.comes())
      #expect(item.wait(timeout: .now() + patience) == .success)
    }

    @Test("S65 wait succeeds at once on an empty group and polls or times out on another")
    func waits() {
      let group = DispatchGroup()
      group.wait()
      #expect(group.wait(timeout: .now()) == .success)
      #expect(group.wait(wallTimeout: .now()) == .success)
      group.enter()
      #expect(group.wait(timeout: .now()) == .timedOut)
      #expect(group.wait(timeout: .now() + .milliseconds(5)) == .timedOut)
      #expect(group.wait(wallTimeout: .now() + .milliseconds(5)) == .timedOut)
      #expect(group.wait(timeout: DispatchTime(uptimeNanoseconds: 1)) == .timedOut)
      group.leave()
      #expect(group.wait(timeout: .now()) == .success)
    }

    @Test("S65 a waiter is released when the count reaches zero, and not before")
    func blockingWait() {
      let group = DispatchGroup()
      let left = Shared(0)
      for _ in 0..<10 {
        group.enter()
        DispatchQueue.global().async {
          left.increment()
          group.leave()
        }
      }
      #expect(group.empties())
      #expect(left.value == 10)
    }

    @Test("S65 several waiters are all released together")
    func manyWaiters() {
      let group = DispatchGroup()
      let released = DispatchSemaphore(value: 0)
      let ready = DispatchSemaphore(value: 0)
      let successes = Shared(0)
      group.enter()
      for index in 0..<4 {
        DispatchQueue(label: "waiter \(index)").async {
          ready.signal()
          if group.empties() { successes.increment() }
          released.signal()
        }
      }
      for _ in 0..<4 { #expect(ready.comes()) }
      #expect(othersHadTheirTurn())
      #expect(successes.value == 0)
      group.leave()
      for _ in 0..<4 { #expect(released.comes()) }
      #expect(successes.value == 4)
    }

    @Test("S66 notify on an empty group submits at once")
    func notifyEmpty() {
      let group = DispatchGroup()
      let fired = DispatchSemaphore(value: 0)
      group.notify(queue: .global()) { fired.signal() }
      #expect(fired.comes())
    }

    @Test("S66 a notification fires once, when the count reaches zero, with the group empty")
    func notifyOnce() {
      let group = DispatchGroup()
      let queue = DispatchQueue(label: "notify")
      let fired = Shared(0)
      let wasEmpty = Shared(false)
      group.enter()
      group.enter()
      group.notify(queue: queue) {
        wasEmpty.set(group.wait(timeout: .now()) == .success)
        fired.increment()
      }
      group.leave()
      #expect(othersHadTheirTurn())
      queue.sync {}
      #expect(fired.value == 0)
      group.leave()
      // The notification is in the queue before leave returns, so a sync comes after it.
      queue.sync {}
      #expect(fired.value == 1)
      #expect(wasEmpty.value)
    }

    @Test("S66 notifications for one serial queue arrive in registration order")
    func notifyOrder() {
      let group = DispatchGroup()
      let queue = DispatchQueue(label: "order")
      let order = Shared([Int]())
      let done = DispatchSemaphore(value: 0)
      group.enter()
      for index in 0..<100 {
        group.notify(queue: queue) {
          order.change { $0.append(index) }
          if index == 99 { done.signal() }
        }
      }
      group.leave()
      #expect(done.comes())
      #expect(order.value == Array(0..<100))
    }

    @Test("S67 a group may be reused, earlier notifications do not fire again")
    func reuse() {
      let group = DispatchGroup()
      let queue = DispatchQueue(label: "reuse")
      let fired = Shared(0)
      let done = DispatchSemaphore(value: 0)
      for round in 1...20 {
        group.enter()
        group.notify(queue: queue) {
          fired.increment()
          done.signal()
        }
        group.leave()
        #expect(done.comes())
        #expect(group.wait(timeout: .now()) == .success)
        #expect(fired.value == round)
      }
    }

    @Test("S68 members that add members before they finish keep the group non-empty")
    func nestedMembers() {
      let group = DispatchGroup()
      let queue = DispatchQueue(label: "nested", attributes: .concurrent)
      let count = Shared(0)
      @Sendable func member(_ depth: Int) {
        count.increment()
        if depth > 0 {
          for _ in 0..<2 { queue.async(group: group) { member(depth - 1) } }
        }
      }
      queue.async(group: group) { member(8) }
      #expect(group.empties())
      #expect(count.value == 511)
    }

    @Test("S69 a pending notification survives the last reference to its group")
    func droppedGroup() {
      let fired = DispatchSemaphore(value: 0)
      let gate = DispatchSemaphore(value: 0)
      let member = DispatchSemaphore(value: 0)
      do {
        let group = DispatchGroup()
        DispatchQueue.global().async(group: group) {
          if gate.comes() { member.signal() }
        }
        group.notify(queue: .global()) { fired.signal() }
      }
      #expect(fired.wait(timeout: .now()) == .timedOut)
      gate.signal()
      #expect(member.comes())
      #expect(fired.comes())
    }

    @Test("S69 a group with an item under way may be dropped")
    func droppedBusyGroup() {
      let ran = DispatchSemaphore(value: 0)
      for _ in 0..<100 {
        DispatchQueue.global().async(group: DispatchGroup()) { ran.signal() }
      }
      for _ in 0..<100 { #expect(ran.comes()) }
    }

    @Test("enter and leave from many threads lose no count")
    func contention() {
      let group = DispatchGroup()
      let finished = Shared(0)
      for _ in 0..<50 {
        DispatchQueue.concurrentPerform(iterations: 8) { _ in
          for _ in 0..<20 {
            group.enter()
            DispatchQueue.global().async {
              finished.increment()
              group.leave()
            }
          }
        }
        #expect(group.empties())
        #expect(finished.value.isMultiple(of: 160))
      }
      #expect(finished.value == 8_000)
    }
  }
}
