import Glibc
import Testing

@testable import ConcourseRuntime

/// Threads of the parent that wait in a queue's list do not exist in the child, and get no turn there.
extension Crash.ForkTests {
  @Test("S148 a queue that a child leaves is not handed to waiting threads of the parent")
  func waitersOfQueues() async {
    await #expect(processExitsWith: .success) {
      let expected = [Int32](repeating: 3 << 8, count: 6)
      #expect(endsAfterLeaving() == expected)
      // The C library gives threads of the child the stacks of the parent's.
      #expect(endsAfterLeaving(waitsAgain: true) == expected)
      let done = DispatchSemaphore(value: 0)
      DispatchQueue(label: "queue").async { done.signal() }
      #expect(comes(done))
      #expect(endsAfterLeaving() == expected)
    }
  }

  @Test("S148 a main queue in a child runs no bodies of waiting threads of the parent")
  func waitersOfMainQueue() async {
    await #expect(processExitsWith: .success) {
      let above = DispatchQueue(label: "above", target: .main)
      beginAsleep { DispatchQueue.main.sync { failed() } }
      beginAsleep { above.sync { failed() } }
      let loop = RunLoopQueue(label: "loop")
      beginAsleep { loop.sync { failed() } }
      let status = inForkedChild {
        DispatchQueue.main.async { _exit(3) }
        _ = loop.perform()
        DispatchQueue.drainMainQueue()
        _exit(2)
      }
      #expect(status == 3 << 8)
    }
  }
}

/// How children end that leave queues for which threads of the parent wait, and one of the child if `waitsAgain`.
private func endsAfterLeaving(waitsAgain: Bool = false) -> [Int32] {
  func end(holding hold: (() -> Void) -> Void, waiting wait: @escaping @Sendable () -> Void) -> Int32 {
    endOfChild(holding: hold, waiting: wait, waitsAgain: waitsAgain)
  }
  let serial = DispatchQueue(label: "serial")
  let below = DispatchQueue(label: "below", target: serial)
  let read = DispatchQueue(label: "read", attributes: .concurrent)
  let written = DispatchQueue(label: "written", attributes: .concurrent)
  let workloop = DispatchWorkloop(label: "workloop")
  return [
    end(holding: { serial.sync(execute: $0) }, waiting: { serial.sync {} }),
    // A thread of the parent holds this one.
    endOfChild(holding: { serial.sync(execute: $0) }, waiting: { below.sync {} }, waitsAgain: false),
    end(holding: { serial.sync(execute: $0) }, waiting: { serial.asyncAndWait {} }),
    end(holding: { workloop.asyncAndWait(execute: $0) }, waiting: { workloop.asyncAndWait {} }),
    end(holding: { written.sync(flags: .barrier, execute: $0) }, waiting: { written.sync {} }),
    end(holding: { read.sync(execute: $0) }, waiting: { read.sync(flags: .barrier) {} }),
  ]
}

/// How a child ends that is forked while its thread holds a queue and another thread waits for that queue. It uses the
/// queue again, twice, and exits with 3.
private func endOfChild(
  holding hold: (() -> Void) -> Void, waiting wait: @escaping @Sendable () -> Void, waitsAgain: Bool
) -> Int32 {
  var child: ForkedChild?
  hold {
    beginAsleep(wait)
    child = ForkedChild()
    if waitsAgain && child!.process == 0 { beginAsleep(wait) }
  }
  if child!.process == 0 {
    for _ in 0..<2 { hold {} }
    _exit(3)
  }
  return child!.status()
}

/// A body that must not run in the child.
private func failed() { _exit(1) }
