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
      // SAFETY: an item may be used from any thread.
      nonisolated(unsafe) var item: DispatchWorkItem?
      stays { body in
        withoutActuallyEscaping(body) {
          item = DispatchWorkItem(block: $0)
          item!.perform()
        }
      }
      #expect(!ProcessFacts.isMultithreaded)
      let waits: [() -> Void] = [
        { serial.sync {} }, { above.sync {} }, { concurrent.sync {} }, { read.sync(flags: .barrier) {} },
        { workloop.asyncAndWait {} }, { once.perform {} }, { item!.wait() },
      ]
      for (index, wait) in waits.enumerated() {
        let status = inForkedChild {
          wait()
          _exit(1)
        }
        #expect(status & 0x7F == SIGILL, "\(index)")
      }
    }
    end.says("in a forked child process", times: 7)
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

  @Test("S148 waits for items that the parent's pool has")
  func waitsForItems() async {
    let end = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
      let queue = DispatchQueue(label: "queue")
      let (group, goOn, begun) = (DispatchGroup(), DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
      // SAFETY: items may be used from any thread.
      nonisolated(unsafe) let running = DispatchWorkItem {
        begun.signal()
        _ = comes(goOn)
      }
      nonisolated(unsafe) let waiting = DispatchWorkItem {}
      queue.async(group: group, execute: running)
      queue.async(group: group, execute: waiting)
      #expect(comes(begun))
      let waits: [@Sendable () -> Void] = [{ running.wait() }, { waiting.wait() }, { group.wait() }]
      for (index, wait) in waits.enumerated() {
        let status = inForkedChild {
          wait()
          _exit(1)
        }
        #expect(status & 0x7F == SIGILL, "\(index)")
      }
      for (index, wait) in [waits[0], waits[2]].enumerated() {
        let status = inForkedChild {
          startThread {
            wait()
            _exit(1)
          }
          while true { _ = pause() }
        }
        #expect(status & 0x7F == SIGILL, "thread \(index)")
      }
      goOn.signal()
      #expect(empties(group))
    }
    end.says("in a forked child process", times: 5)
  }

  @Test("S148 a second thread of the child waits for items that the first one serves")
  func waitsForServedItems() async {
    await #expect(processExitsWith: .success) {
      let done = DispatchSemaphore(value: 0)
      DispatchQueue(label: "queue").async { done.signal() }
      #expect(comes(done))
      let group = DispatchGroup()
      let above = DispatchQueue(label: "above", target: .main)
      DispatchQueue.main.async(group: group) {}
      above.async(group: group) {}
      let status = inForkedChild {
        beginAsleep {
          group.wait()
          _exit(3)
        }
        DispatchQueue.drainMainQueue()
        while true { _ = pause() }
      }
      #expect(status == 3 << 8)
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
