import Glibc
import Testing

@testable import ConcourseRuntime

/// Threads of the parent that wait in a queue's list do not exist in the child, and get no turn there.
extension Crash.ForkTests {
  @Test("S148 a queue that a child leaves is not handed to waiting threads of the parent")
  func waitersOfQueues() async {
    await #expect(processExitsWith: .success) {
      // The second time with threads of the pool.
      for _ in 0..<2 {
        let serial = DispatchQueue(label: "serial")
        #expect(end(holding: { serial.sync(execute: $0) }, waiting: { serial.sync {} }) == 3 << 8, "serial")
        let below = DispatchQueue(label: "below", target: serial)
        #expect(end(holding: { serial.sync(execute: $0) }, waiting: { below.sync {} }) == 3 << 8, "target")
        let inline = { @Sendable in serial.asyncAndWait {} }
        #expect(end(holding: { serial.sync(execute: $0) }, waiting: inline) == 3 << 8, "asyncAndWait")
        let workloop: DispatchQueue = DispatchWorkloop(label: "workloop")
        let loop = end(
          holding: { body in workloop.asyncAndWait { body() } }, waiting: { workloop.asyncAndWait {} })
        #expect(loop == 3 << 8, "workloop")
        let concurrent = DispatchQueue(label: "concurrent", attributes: .concurrent)
        let barrier = { @Sendable (body: () -> Void) in concurrent.sync(flags: .barrier, execute: body) }
        #expect(end(holding: barrier, waiting: { concurrent.sync {} }) == 3 << 8, "reader")
        let other = DispatchQueue(label: "concurrent", attributes: .concurrent)
        let writer = { @Sendable in other.sync(flags: .barrier) {} }
        #expect(end(holding: { other.sync(execute: $0) }, waiting: writer) == 3 << 8, "writer")
        let done = DispatchSemaphore(value: 0)
        serial.async { done.signal() }
        #expect(comes(done))
      }
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

/// How a child ends that is forked while its thread holds a queue and another thread waits for that queue. It uses the
/// queue again, twice, and exits with 3.
private func end(
  holding hold: (() -> Void) -> Void, waiting wait: @escaping @Sendable () -> Void
) -> Int32 {
  var child: ForkedChild?
  hold {
    beginAsleep(wait)
    child = ForkedChild()
  }
  if child!.process == 0 {
    for _ in 0..<2 { hold {} }
    _exit(3)
  }
  return child!.status()
}

/// A body that must not run in the child.
private func failed() { _exit(1) }
