import Glibc
import Testing

@testable import ConcourseRuntime

extension Crash {
  /// Waiting for the own queue is detected at once, through every kind of item and every chain of targets.
  @Suite("Sync on a queue that the thread already holds")
  struct SyncCrashTests {
    @Test("S8 a serial queue from its own sync item")
    func serialWithinSync() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let queue = DispatchQueue(label: "own\n\u{1B}[31m")
        queue.sync { queue.sync {} }
      }
      end.says(#"sync on queue "own\n\u{1B}[31m", which the calling item already holds"#)
    }

    @Test("S8 a serial queue from its own async item")
    func serialWithinAsync() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let queue = DispatchQueue(label: "own")
        queue.async { queue.sync {} }
        awaitDeath()
      }
      end.says("sync on queue \"own\", which the calling item already holds")
    }

    @Test("S8 a serial queue with work waiting, from its own async item")
    func serialWithWork() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let queue = DispatchQueue(label: "own")
        queue.async {
          queue.async {}
          queue.sync {}
        }
        awaitDeath()
      }
      end.says("sync on queue \"own\", which the calling item already holds")
    }

    @Test("S8 a concurrent queue, barrier or not, from its own barrier")
    func withinBarrier() async {
      let plain = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let queue = DispatchQueue(label: "shared", attributes: .concurrent)
        queue.sync(flags: .barrier) { queue.sync {} }
      }
      plain.says("sync on queue \"shared\", which the calling item already holds")
      let barrier = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let queue = DispatchQueue(label: "shared", attributes: .concurrent)
        queue.async(flags: .barrier) { queue.sync(flags: .barrier) {} }
        awaitDeath()
      }
      barrier.says("sync on queue \"shared\", which the calling item already holds")
    }

    @Test("S8 A from B from A")
    func chain() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let a = DispatchQueue(label: "A")
        let b = DispatchQueue(label: "B")
        a.sync { b.sync { a.sync {} } }
      }
      end.says("sync on queue \"A\", which the calling item already holds")
    }

    @Test("S8 a target from an item of its child, sync and async")
    func targetFromChild() async {
      let sync = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let target = DispatchQueue(label: "target")
        let child = DispatchQueue(label: "child", target: target)
        child.sync { target.sync {} }
      }
      sync.says("sync on queue \"target\", which the calling item already holds")
      let async = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let target = DispatchQueue(label: "target")
        let middle = DispatchQueue(label: "middle", attributes: .concurrent, target: target)
        let child = DispatchQueue(label: "child", attributes: .concurrent, target: middle)
        child.async { target.sync {} }
        awaitDeath()
      }
      async.says("sync on queue \"target\", which the calling item already holds")
    }

    @Test("S8 a child from an item of its target")
    func childFromTarget() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let target = DispatchQueue(label: "target")
        let child = DispatchQueue(label: "child", target: target)
        target.async { child.sync {} }
        awaitDeath()
      }
      end.says("sync on queue \"target\", which the calling item already holds")
    }

    @Test("S8 a sibling below the same serial target")
    func sibling() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let target = DispatchQueue(label: "target")
        let one = DispatchQueue(label: "one", target: target)
        let other = DispatchQueue(label: "other", attributes: .concurrent, target: target)
        one.sync { other.sync {} }
      }
      end.says("sync on queue \"target\", which the calling item already holds")
    }

    @Test("S9 a barrier from inside a plain item, sync and async")
    func barrierWithinPlain() async {
      let sync = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let queue = DispatchQueue(label: "shared", attributes: .concurrent)
        queue.sync { queue.sync(flags: .barrier) {} }
      }
      sync.says("barrier sync on queue \"shared\" from inside one of its items")
      let async = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let queue = DispatchQueue(label: "shared", attributes: .concurrent)
        queue.async { queue.sync(flags: .barrier) {} }
        awaitDeath()
      }
      async.says("barrier sync on queue \"shared\" from inside one of its items")
    }

    @Test("S11 asyncAndWait on the own queue")
    func asyncAndWait() async {
      let serial = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let queue = DispatchQueue(label: "own")
        queue.async { queue.asyncAndWait {} }
        awaitDeath()
      }
      serial.says("sync on queue \"own\", which the calling item already holds")
      let barrier = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let queue = DispatchQueue(label: "shared", attributes: .concurrent)
        queue.asyncAndWait { queue.asyncAndWait(flags: .barrier) {} }
      }
      barrier.says("barrier sync on queue \"shared\" from inside one of its items")
    }

    @Test("S8 a work item, synchronously on the own queue")
    func workItem() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let queue = DispatchQueue(label: "own")
        queue.sync { queue.sync(execute: DispatchWorkItem {}) }
      }
      end.says("sync on queue \"own\", which the calling item already holds")
    }

    @Test("a run-loop queue released while a thread waits for it")
    func runLoopQueueGoes() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let queue = RunLoopQueue(label: "served")
        // In Swift the caller of `sync` holds the queue. Here the waiter has no reference, as in C.
        var waiter = SyncWaiter(
          thread: CurrentThread.id, exclusive: false, queue: .passUnretained(queue), frame: nil,
          level: .unspecified, body: {})
        withUnsafeMutablePointer(to: &waiter) {
          let work = Work.waiter($0, thread: CurrentThread.id, forks: Process.forks)
          queue.submit(NodeMagazine.make(work, level: .unspecified, traits: .waiter))
        }
      }
      end.says("the last reference to queue \"served\" was released while a thread waits in sync on it")
    }
  }
}
