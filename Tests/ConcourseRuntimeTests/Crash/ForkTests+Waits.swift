import CConcourse
import Glibc
import Synchronization
import Testing

@testable import ConcourseRuntime

/// What a child does that waits for a thread, of its own or of its parent.
extension Crash.ForkTests {
  @Test("S148 waits for threads of the parent trap, although its pool had none")
  func waitsForPlainThreads() async {
    let end = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
      let serial = DispatchQueue(label: "serial")
      let target = DispatchQueue(label: "target")
      let above = DispatchQueue(label: "above", target: target)
      let concurrent = DispatchQueue(label: "concurrent", attributes: .concurrent)
      let read = DispatchQueue(label: "read", attributes: .concurrent)
      let workloop: DispatchQueue = DispatchWorkloop(label: "workloop")
      let once = DispatchOnce()
      stays { serial.sync(execute: $0) }
      stays { target.sync(execute: $0) }
      stays { concurrent.sync(flags: .barrier, execute: $0) }
      stays { read.sync(execute: $0) }
      stays { body in workloop.asyncAndWait { body() } }
      stays { once.perform($0) }
      #expect(!ProcessFacts.isMultithreaded)
      let waits: [() -> Void] = [
        { serial.sync {} }, { above.sync {} }, { concurrent.sync {} }, { read.sync(flags: .barrier) {} },
        { workloop.asyncAndWait {} }, { once.perform {} },
      ]
      for (index, wait) in waits.enumerated() {
        let status = inForkedChild {
          wait()
          _exit(1)
        }
        #expect(status & 0x7F == SIGILL, "\(index)")
      }
    }
    end.says("in a forked child process", times: 6)
  }

  @Test("S148 a thread of a child waits for the thread that has forked")
  func waitsForForker() async {
    await #expect(processExitsWith: .success) {
      let queue = DispatchQueue(label: "queue")
      let once = DispatchOnce()
      let blocks: [@Sendable (() -> Void) -> Void] = [{ queue.sync(execute: $0) }, { once.perform($0) }]
      for block in blocks {
        var child: ForkedChild?
        block {
          child = ForkedChild()
          if child!.process == 0 {
            beginAsleep {
              block {}
              _exit(3)
            }
          }
        }
        if child!.process == 0 { while true { _ = pause() } }
        #expect(child!.status() == 3 << 8)
      }
    }
  }
}

/// Starts a thread that stays in the body that it gives to `enter`, and returns when it is there.
private func stays(in enter: @escaping @Sendable (() -> Void) -> Void) {
  let inside = DispatchSemaphore(value: 0)
  startThread {
    enter {
      inside.signal()
      while true { _ = pause() }
    }
  }
  #expect(comes(inside))
}

/// Starts a thread, and returns when it sleeps.
func beginAsleep(_ body: @escaping @Sendable () -> Void) {
  let thread = Shared<UInt32>(0)
  startThread {
    thread.change { $0 = CurrentThread.id }
    body()
  }
  while thread.value == 0 || SystemThread.isAsleep(thread.value) != true { Processor.yield() }
}
