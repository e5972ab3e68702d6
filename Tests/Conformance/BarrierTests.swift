// B. Barriers.

import Glibc
import Testing

#if CONCOURSE
  import ConcourseEvents
#else
  import Dispatch
#endif

extension Conformance {
  @Suite("B. Barriers")
  struct BarrierTests {
    /// Watches that a barrier runs alone and between the right items.
    private final class Watch: Sendable {
      private let state = Shared((plain: 0, barriers: 0, phase: 0, faults: 0))

      var faults: Int { state.value.faults }
      var phase: Int { state.value.phase }

      /// A plain item submitted after `phase` barriers.
      func plain(phase: Int) {
        state.change { state in
          state.plain += 1
          if state.barriers != 0 || state.phase != phase { state.faults += 1 }
        }
        sched_yield()
        state.change { $0.plain -= 1 }
      }

      /// The barrier that ends `phase`.
      func barrier(phase: Int) {
        state.change { state in
          state.barriers += 1
          if state.plain != 0 || state.barriers != 1 || state.phase != phase { state.faults += 1 }
        }
        sched_yield()
        state.change { state in
          if state.plain != 0 { state.faults += 1 }
          state.barriers -= 1
          state.phase += 1
        }
      }
    }

    private let queue = DispatchQueue(label: "barriers", attributes: .concurrent)

    @Test("S15 a barrier runs alone, after every earlier and before every later item")
    func asyncBarriers() {
      let watch = Watch()
      let group = DispatchGroup()
      for phase in 0..<300 {
        for _ in 0..<5 { queue.async(group: group) { watch.plain(phase: phase) } }
        queue.async(group: group, flags: .barrier) { watch.barrier(phase: phase) }
      }
      #expect(group.empties())
      #expect(watch.faults == 0)
      #expect(watch.phase == 300)
    }

    @Test("S15 a blocked item holds a barrier back, a blocked barrier holds later items back")
    func blockedItems() {
      let started = DispatchSemaphore(value: 0)
      let earlierGate = DispatchSemaphore(value: 0)
      let barrierGate = DispatchSemaphore(value: 0)
      let barrierStarted = DispatchSemaphore(value: 0)
      let order = Shared([String]())
      let group = DispatchGroup()
      queue.async(group: group) {
        started.signal()
        if earlierGate.comes() { order.change { $0.append("earlier") } }
      }
      #expect(started.comes())
      queue.async(group: group, flags: .barrier) {
        order.change { $0.append("barrier starts") }
        barrierStarted.signal()
        if barrierGate.comes() { order.change { $0.append("barrier ends") } }
      }
      for _ in 0..<3 { queue.async(group: group) { order.change { $0.append("later") } } }
      #expect(othersHadTheirTurn())
      #expect(order.value == [])
      earlierGate.signal()
      #expect(barrierStarted.comes())
      #expect(othersHadTheirTurn())
      #expect(order.value == ["earlier", "barrier starts"])
      barrierGate.signal()
      #expect(group.empties())
      #expect(
        order.value == ["earlier", "barrier starts", "barrier ends", "later", "later", "later"])
    }

    @Test("S15 a plain sync waits for a running barrier")
    func syncBehindBarrier() {
      let barrierStarted = DispatchSemaphore(value: 0)
      let gate = DispatchSemaphore(value: 0)
      let ended = Shared(false)
      let aboutToSync = DispatchSemaphore(value: 0)
      let done = DispatchSemaphore(value: 0)
      let sawEnd = Shared(false)
      queue.async(flags: .barrier) {
        barrierStarted.signal()
        ended.set(gate.comes())
      }
      #expect(barrierStarted.comes())
      let queue = queue
      DispatchQueue(label: "caller").async {
        aboutToSync.signal()
        queue.sync { sawEnd.set(ended.value) }
        done.signal()
      }
      #expect(aboutToSync.comes())
      #expect(othersHadTheirTurn())
      gate.signal()
      #expect(done.comes())
      #expect(sawEnd.value)
    }

    @Test("S15 a barrier sync waits for earlier items and for itself")
    func syncBarriers() {
      let watch = Watch()
      for phase in 0..<300 {
        for _ in 0..<4 { queue.async { watch.plain(phase: phase) } }
        queue.sync(flags: .barrier) { watch.barrier(phase: phase) }
        #expect(watch.phase == phase + 1)
      }
      #expect(watch.faults == 0)
    }

    @Test("S15 plain syncs respect barriers")
    func plainSyncs() {
      let watch = Watch()
      for phase in 0..<300 {
        queue.sync { watch.plain(phase: phase) }
        queue.async { watch.plain(phase: phase) }
        queue.async(flags: .barrier) { watch.barrier(phase: phase) }
        queue.sync { watch.plain(phase: phase + 1) }
      }
      #expect(watch.faults == 0)
    }

    @Test("S15 consecutive barriers run in order")
    func consecutiveBarriers() {
      let order = Shared([Int]())
      for index in 0..<1_000 {
        queue.async(flags: .barrier) { order.change { $0.append(index) } }
      }
      queue.sync(flags: .barrier) {}
      #expect(order.value == Array(0..<1_000))
    }

    @Test("S15 readers and writers from many threads exclude one another as promised")
    func readersAndWriters() {
      let table = Shared([Int: Int]())
      let writer = Shared(false)
      let faults = Shared(0)
      DispatchQueue.concurrentPerform(iterations: 8) { thread in
        for round in 0..<200 {
          if round.isMultiple(of: 4) {
            queue.sync(flags: .barrier) {
              writer.set(true)
              table.change { $0[thread] = round }
              for _ in 0..<3 { sched_yield() }
              writer.set(false)
            }
          } else {
            queue.sync { if writer.value { faults.increment() } }
          }
        }
      }
      #expect(faults.value == 0)
      #expect(table.value.count == 8)
    }

    @Test("S16 on a global queue barriers overlap like ordinary items")
    func globalQueue() {
      let meeting = Meeting()
      let group = DispatchGroup()
      let met = Shared([Bool]())
      DispatchQueue.global().async(group: group, flags: .barrier) {
        let success = meeting.meetAsFirst()
        met.change { $0.append(success) }
      }
      DispatchQueue.global().async(group: group, flags: .barrier) {
        let success = meeting.meetAsSecond()
        met.change { $0.append(success) }
      }
      #expect(group.empties())
      #expect(met.value == [true, true])
    }

    @Test("S16 on a serial queue the barrier flag changes nothing")
    func serialQueue() {
      let serial = DispatchQueue(label: "serial")
      let order = Shared([Int]())
      for index in 0..<100 {
        serial.async(flags: index.isMultiple(of: 3) ? .barrier : []) {
          order.change { $0.append(index) }
        }
      }
      serial.sync(flags: .barrier) {}
      #expect(order.value == Array(0..<100))
    }

    @Test("S17 a work item made with the barrier flag is a barrier when submitted async or sync")
    func barrierWorkItems() {
      let watch = Watch()
      for phase in 0..<200 {
        for _ in 0..<4 { queue.async { watch.plain(phase: phase) } }
        let item = DispatchWorkItem(flags: .barrier) { watch.barrier(phase: phase) }
        if phase.isMultiple(of: 2) {
          queue.async(execute: item)
        } else {
          queue.sync(execute: item)
        }
      }
      queue.sync(flags: .barrier) {}
      #expect(watch.faults == 0)
      #expect(watch.phase == 200)
    }

    @Test("S17 the barrier flag means nothing when the item is performed directly")
    func performedDirectly() {
      let group = DispatchGroup()
      let gate = DispatchSemaphore(value: 0)
      let passed = Shared(false)
      queue.async(group: group) { passed.set(gate.comes()) }
      queue.async(group: group) {
        DispatchWorkItem(flags: .barrier) { gate.signal() }.perform()
      }
      #expect(group.empties())
      #expect(passed.value)
    }

    @Test("S18 a barrier orders only its own queue: siblings keep running")
    func siblings() {
      let target = DispatchQueue(label: "shared target", attributes: .concurrent)
      let left = DispatchQueue(label: "left", attributes: .concurrent, target: target)
      let right = DispatchQueue(label: "right", attributes: .concurrent, target: target)
      let group = DispatchGroup()
      let meeting = Meeting()
      let met = Shared([Bool]())
      left.async(group: group, flags: .barrier) {
        let success = meeting.meetAsFirst()
        met.change { $0.append(success) }
      }
      right.async(group: group) {
        let success = meeting.meetAsSecond()
        met.change { $0.append(success) }
      }
      #expect(group.empties())
      #expect(met.value == [true, true])
    }
  }
}
