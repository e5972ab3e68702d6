import Glibc
import Testing

@testable import ConcourseRuntime

extension Engine {
  @Suite("Lock")
  struct LockTests {
    @Test("one holder at a time")
    func exclusion() {
      let guarded = Guarded()
      let count = Sanitizer.shrunk(50_000)
      let ended = onThreads(4) { _ in
        for _ in 0..<count { guarded.lock.withLock { guarded.number.value += 1 } }
      }
      #expect(ended)
      #expect(guarded.number.value == 4 * count)
    }

    @Test("a worker that waits patiently is not counted as active")
    func patience() {
      let guarded = Guarded()
      let (begun, done) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
      let worker = Shared<WorkerPointer?>(nil)
      let isHeld = Tally()
      DispatchQueue.global().async {
        worker.change { $0 = WorkerThread.current }
        begun.signal()
        #expect(awaitValue { isHeld.value == 1 })
        guarded.lock.withLockPatiently { guarded.number.value += 1 }
        done.signal()
      }
      #expect(comes(begun))
      let record = worker.value!
      guarded.lock.lock()
      isHeld.add()
      // ORDERING: relaxed; the status is all that is read.
      #expect(awaitValue { record.pointee.status.load(ordering: .relaxed) == WorkerRecord.Status.waiting })
      guarded.lock.unlock()
      #expect(comes(done))
      #expect(guarded.number.value == 1)
    }

    @Test("holders that sleep while they hold it: waiters sleep too, and all wake up")
    func slowHolders() {
      let guarded = Guarded()
      let ended = onThreads(8) { _ in
        for _ in 0..<50 {
          guarded.lock.withLock {
            guarded.number.value += 1
            for _ in 0..<20 { Processor.yield() }
          }
        }
      }
      #expect(ended)
      #expect(guarded.number.value == 400)
    }

    @Test("tryLock succeeds only on a free lock")
    func tries() {
      let lock = Lock(.test)
      let tried = [lock.tryLock(), lock.tryLock()]
      lock.unlock()
      let again = lock.tryLock()
      lock.unlock()
      #expect(tried == [true, false])
      #expect(again)
    }
  }
}

extension Crash {
  @Suite("Order of locks")
  struct LockOrderTests {
    @Test("a lock taken while another is held that LockRank does not allow")
    func order() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let depot = Lock(.nodeDepot)
        let extras = Lock(.objectExtras)
        extras.withLock { depot.withLock {} }
        depot.withLock { extras.withLock {} }
      }
      let text = "the lock objectExtras was taken while nodeDepot was held, against the order of LockRank"
      let spoken = String(decoding: end?.standardErrorContent ?? [], as: UTF8.self)
      #expect(spoken == "Concourse: BUG IN CONCOURSE: \(text)\n")
    }
  }
}

private final class Guarded: Sendable {
  let lock = Lock(.test)
  let number = Unprotected(0)
}
