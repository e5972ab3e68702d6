// C. Target queues.

import Testing

#if CONCOURSE
  import ConcourseEvents
#else
  import Dispatch
#endif

extension Conformance {
  @Suite("C. Target queues")
  struct TargetTests {
    @Test("S20 queues whose chains meet in one serial queue exclude one another")
    func sharedSerialTarget() {
      let bottom = DispatchQueue(label: "bottom")
      let queues = [
        bottom,
        DispatchQueue(label: "serial", target: bottom),
        DispatchQueue(label: "concurrent", attributes: .concurrent, target: bottom),
        DispatchQueue(label: "deep", target: DispatchQueue(label: "between", target: bottom)),
        DispatchQueue(
          label: "deep concurrent", attributes: .concurrent,
          target: DispatchQueue(label: "between", attributes: .concurrent, target: bottom)),
      ]
      let overlap = Overlap()
      let group = DispatchGroup()
      DispatchQueue.concurrentPerform(iterations: 5) { index in
        for round in 0..<100 {
          if round.isMultiple(of: 5) {
            queues[index].sync { overlap.visit() }
          } else {
            queues[index].async(group: group) { overlap.visit() }
          }
        }
      }
      #expect(group.empties())
      #expect(overlap.visits == 500)
      #expect(overlap.peak == 1)
    }

    @Test("S20 each queue of a hierarchy keeps its own order")
    func orderWithinHierarchy() {
      let bottom = DispatchQueue(label: "bottom")
      let left = DispatchQueue(label: "left", target: bottom)
      let right = DispatchQueue(label: "right", target: bottom)
      let group = DispatchGroup()
      let leftOrder = Shared([Int]())
      let rightOrder = Shared([Int]())
      for index in 0..<1_000 {
        left.async(group: group) { leftOrder.change { $0.append(index) } }
        right.async(group: group) { rightOrder.change { $0.append(index) } }
      }
      #expect(group.empties())
      #expect(leftOrder.value == Array(0..<1_000))
      #expect(rightOrder.value == Array(0..<1_000))
    }

    @Test("S20 serial queues with a concurrent target run at the same moment")
    func concurrentTarget() {
      let target = DispatchQueue(label: "target", attributes: .concurrent)
      let meeting = Meeting()
      let group = DispatchGroup()
      let met = Shared([Bool]())
      DispatchQueue(label: "left", target: target).async(group: group) {
        let success = meeting.meetAsFirst()
        met.change { $0.append(success) }
      }
      DispatchQueue(label: "right", target: target).async(group: group) {
        let success = meeting.meetAsSecond()
        met.change { $0.append(success) }
      }
      #expect(group.empties())
      #expect(met.value == [true, true])
    }

    @Test("S23 an inactive queue is retargeted with immediate effect")
    func retargetInactive() {
      let bottom = DispatchQueue(label: "bottom")
      let elsewhere = DispatchQueue(label: "elsewhere")
      let queues = (0..<3).map { index in
        DispatchQueue(
          label: "inactive", attributes: [.concurrent, .initiallyInactive],
          target: index == 0 ? elsewhere : nil)
      }
      let key = DispatchSpecificKey<String>()
      bottom.setSpecific(key: key, value: "bottom")
      let overlap = Overlap()
      let group = DispatchGroup()
      let found = Shared([String?]())
      for queue in queues {
        queue.setTarget(queue: bottom)
        for _ in 0..<100 { queue.async(group: group) { overlap.visit() } }
        queue.async(group: group) {
          let value = DispatchQueue.getSpecific(key: key)
          found.change { $0.append(value) }
        }
      }
      for queue in queues { queue.activate() }
      #expect(group.empties())
      #expect(overlap.peak == 1)
      #expect(overlap.visits == 300)
      #expect(found.value == ["bottom", "bottom", "bottom"])
    }

    @Test("S24 the target of a group or semaphore changes nothing about its use")
    func groupAndSemaphoreTargets() {
      let queue = DispatchQueue(label: "finalizers")
      let group = DispatchGroup()
      group.setTarget(queue: queue)
      DispatchQueue.global().async(group: group) {}
      #expect(group.empties())
      let semaphore = DispatchSemaphore(value: 0)
      semaphore.setTarget(queue: queue)
      semaphore.signal()
      #expect(semaphore.comes())
    }

    #if CONCOURSE
      // The incumbent's signature takes no nil.
      @Test("S24 a nil target restores the default")
      func nilTarget() {
        let blocked = DispatchQueue(label: "blocked")
        let queue = DispatchQueue(label: "inactive", attributes: .initiallyInactive, target: blocked)
        let done = DispatchSemaphore(value: 0)
        queue.async { done.signal() }
        queue.setTarget(queue: nil)
        blocked.suspend()
        queue.activate()
        #expect(done.comes())
        blocked.resume()
      }
    #endif
  }
}
