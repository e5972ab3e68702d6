import CConcourse
import Glibc
import Synchronization
import Testing

@testable import ConcourseRuntime

/// A child that a worker has forked does not go on as a worker.
extension Crash.ForkTests {
  private static let line =
    "return from an item of the pool that has called fork, in a forked child process, which has no worker threads; "
    + "only exec and sync on idle queues work after fork [C407]"

  @Test("S148 a child that returns from an item of the pool runs no other item")
  func returnFromItem() async {
    let end = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
      let serial = DispatchQueue(label: "serial")
      let workloop = DispatchWorkloop(label: "workloop")
      for queue in [
        serial, workloop, DispatchQueue(label: "above", target: serial),
        DispatchQueue(label: "above workloop", target: workloop),
        DispatchQueue(label: "concurrent", attributes: .concurrent), DispatchQueue.global(),
      ] {
        let forks = ReturningChild()
        let group = DispatchGroup()
        // All are in the list before the first runs. On a concurrent queue, barriers are.
        serial.suspend()
        workloop.suspend()
        queue.async(group: group, flags: .barrier) { forks.fork() }
        queue.async(group: group, flags: .barrier) { forks.requireParent() }
        serial.async(group: group) { forks.requireParent() }
        workloop.async(group: group) { forks.requireParent() }
        serial.resume()
        workloop.resume()
        #expect(empties(group))
        #expect(forks.status & 0x7F == SIGILL, "\(queue.label)")
      }
    }
    end.says(Self.line, times: 6)
  }

  @Test("S148 a child may leave a sync in which a worker has forked, and use that queue in the item")
  func leaveSyncInItem() async {
    await #expect(processExitsWith: .success) {
      let forks = ReturningChild()
      let group = DispatchGroup()
      let queue = DispatchQueue(label: "queue")
      DispatchQueue(label: "outer").async(group: group) {
        queue.sync { forks.fork() }
        if forks.isChild { _exit(queue.sync { 3 }) }
      }
      #expect(empties(group))
      #expect(forks.status == 3 << 8)
    }
  }

  @Test("S148 a child that returns from a body of asyncAndWait that a worker runs")
  func returnFromBody() async {
    let end = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
      let queue = DispatchQueue(label: "queue")
      let forks = ReturningChild()
      let caller = CurrentThread.id
      while forks.status == -1 {
        queue.async {
          // Until the caller waits behind this item, so that this worker runs its body.
          while SystemThread.isAsleep(caller) != true { Processor.yield() }
        }
        queue.asyncAndWait {
          if WorkerThread.current != nil { forks.fork() }
        }
        forks.requireParent()
      }
      #expect(forks.status & 0x7F == SIGILL)
    }
    end.says(Self.line)
  }

  @Test(
    "S148 a child that returns from an iteration of another thread's loop",
    .enabled(if: PoolSize.width > 1))
  func returnFromIteration() async {
    let end = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
      let forks = ReturningChild()
      let caller = CurrentThread.id
      let isOver = Atomic<Bool>(false)
      DispatchQueue.concurrentPerform(iterations: 64) { _ in
        forks.requireParent()
        // ORDERING: acquiring, both, and releasing; the caller reads the status.
        if CurrentThread.id == caller {
          while !isOver.load(ordering: .acquiring) { Processor.yield() }
        } else if !isOver.load(ordering: .acquiring) {
          forks.fork()
          isOver.store(true, ordering: .releasing)
        }
      }
      #expect(forks.status & 0x7F == SIGILL)
    }
    end.says(Self.line)
  }

  @Test("S148 a child in an item of the pool serves the main queue for its other threads")
  func servesInItem() async {
    await #expect(processExitsWith: .success) {
      let forks = ReturningChild()
      let group = DispatchGroup()
      DispatchQueue.global().async(group: group) {
        forks.fork()
        guard forks.isChild else { return }
        startThread {
          DispatchQueue.main.sync {}
          _exit(3)
        }
        while true { DispatchQueue.drainMainQueue() }
      }
      #expect(empties(group))
      #expect(forks.status == 3 << 8)
    }
  }

  @Test("S58, S148 an item that a child releases without having run drops its notifications")
  func releasedItem() async {
    await #expect(processExitsWith: .success) {
      let queue = DispatchQueue(label: "queue")
      warmUp(queue)
      let released = Tally()
      var item: DispatchWorkItem? = DispatchWorkItem {}
      do {
        let owned = OwnedByNotification(released: released)
        item?.notify(queue: queue) { withExtendedLifetime(owned) {} }
      }
      let status = inForkedChild {
        item = nil
        _exit(released.value == 1 ? 3 : 4)
      }
      #expect(status == 3 << 8)
    }
  }
}

private final class OwnedByNotification: Sendable {
  private let released: Tally
  init(released: Tally) { self.released = released }
  deinit { released.add() }
}

/// A child that returns from the code that has forked it.
private final class ReturningChild: Sendable {
  private let parent = getpid()
  private let end = Atomic<Int32>(-1)

  /// How the child ended. The parent reads it after a call of `fork` has returned there.
  // ORDERING: relaxed, both; what waits for the item orders them.
  var status: Int32 { end.load(ordering: .relaxed) }
  var isChild: Bool { getpid() != parent }

  /// Returns in the child at once, and in the parent when the child has ended.
  func fork() {
    // As in `inForkedChild`.
    for _ in 0..<5 {
      let child = ForkedChild()
      if child.process == 0 { return }
      end.store(child.status(), ordering: .relaxed)
      if status & 0x7F != SIGKILL { return }
    }
  }

  /// Ends the child: it runs what is not its own.
  func requireParent() {
    if isChild { _exit(4) }
  }
}
