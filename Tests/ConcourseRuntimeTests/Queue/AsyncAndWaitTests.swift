import Testing

@testable import ConcourseRuntime

extension Engine {
  @Suite("asyncAndWait")
  struct AsyncAndWaitTests {
    @Test("S11 with a worker draining the queue the closure runs on that worker")
    func onWorker() {
      let queue = DispatchQueue(label: "busy")
      let worker = Shared<UInt32>(0)
      let started = DispatchSemaphore(value: 0)
      queue.async {
        worker.change { $0 = CurrentThread.id }
        let own = queue.list.first()!
        started.signal()
        // Wait until the caller is in the queue, behind this item.
        _ = awaitValue { queue.list.next(after: own) != nil }
      }
      #expect(comes(started))
      let ranOn = queue.asyncAndWait { CurrentThread.id }
      #expect(ranOn == worker.value)
      #expect(ranOn != CurrentThread.id)
    }

    @Test("S11 on an idle queue the closure runs on the caller")
    func onCaller() {
      let serial = DispatchQueue(label: "idle")
      let concurrent = DispatchQueue(label: "idle", attributes: .concurrent)
      #expect(serial.asyncAndWait { CurrentThread.id } == CurrentThread.id)
      #expect(concurrent.asyncAndWait { CurrentThread.id } == CurrentThread.id)
      #expect(concurrent.asyncAndWait(flags: .barrier) { CurrentThread.id } == CurrentThread.id)
    }

    @Test("S138 a closure that a worker runs still counts as called from where its caller waits")
    func frames() {
      let queue = DispatchQueue(label: "busy")
      let outer = DispatchQueue(label: "outer")
      let started = DispatchSemaphore(value: 0)
      queue.async {
        let own = queue.list.first()!
        started.signal()
        _ = awaitValue { queue.list.next(after: own) != nil }
      }
      #expect(comes(started))
      let holds = outer.sync {
        queue.asyncAndWait {
          _dispatchPreconditionTest(.onQueueAsBarrier(queue)) && _dispatchPreconditionTest(.onQueue(outer))
        }
      }
      #expect(holds)
    }

    @Test("S11 a work item waits too, and is skipped when cancelled")
    func workItem() {
      let queue = DispatchQueue(label: "idle")
      let ran = Tally()
      queue.asyncAndWait(execute: DispatchWorkItem { ran.add() })
      #expect(ran.value == 1)
      let cancelled = DispatchWorkItem { ran.add() }
      cancelled.cancel()
      queue.asyncAndWait(execute: cancelled)
      #expect(ran.value == 1)
    }
  }
}
