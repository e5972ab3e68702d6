import Testing

@testable import ConcourseModel

/// What the event loop does when the system refuses its thread, the event queue, or to set a timer.
extension ModelSuite {
  @Suite struct Refusals {
    // MARK: Threads

    /// The system refuses the loop's thread. The item of one event sleeps until that of another has run: a second
    /// worker waits for events meanwhile.
    /// - Parameter workersRest: false if they are on their way to sleep when the event queue is made.
    private static func refusedLoop(workersRest: Bool) {
      Model.setProcessors(2)
      EventLoop.use(begins: false)
      Runtime.shared.monitor.ensureStarted()
      let (begun, goOn, ended) = (
        DispatchSemaphore(value: 0), DispatchSemaphore(value: 0), DispatchSemaphore(value: 0)
      )
      let (first, second) = (ModelKernel.make(.pipe), ModelKernel.make(.pipe))
      for _ in 0..<2 {
        DispatchQueue.global().async {
          begun.signal()
          goOn.wait()
        }
      }
      Model.run()
      ModelFaults.refusesThreads = true
      for _ in 0..<2 {
        begun.wait()
        goOn.signal()
      }
      if workersRest { Model.run() }
      Model.thread("client") {
        FileWatch(
          descriptor: first, interest: .read,
          owner: WatchOwner {
            DispatchQueue.global().async {
              begun.signal()
              goOn.wait()
              ended.signal()
            }
          }
        ).install()
        FileWatch(
          descriptor: second, interest: .read,
          owner: WatchOwner { DispatchQueue.global().async { goOn.signal() } }
        ).install()
        ModelKernel.write(first)
        begun.wait()
        ModelKernel.write(second)
        ended.wait()
      }
      Model.run()
    }

    @Test(arguments: [false, true]) func refusedLoops(workersRest: Bool) {
      expectNoFailure(
        Model.random("the loop's thread is refused", runs: 2_000, allowTime: true) {
          Self.refusedLoop(workersRest: workersRest)
        })
    }

    /// Without the loop's thread, the worker that waits for events does not retire.
    private static func lastOneWaiting() {
      Model.setProcessors(1)
      EventLoop.use(begins: false)
      Runtime.shared.monitor.ensureStarted()
      DispatchQueue.global().async {}
      Model.run()
      ModelFaults.refusesThreads = true
      let pipe = ModelKernel.make(.pipe)
      let done = DispatchSemaphore(value: 0)
      Model.thread("client") {
        FileWatch(descriptor: pipe, interest: .read, owner: WatchOwner { done.signal() }).install()
        Model.sleep(nanoseconds: PoolSize.idleLifetime + 1)
        ModelKernel.write(pipe)
        done.wait()
      }
      Model.run()
    }

    @Test func theLastOneThatWaitsStays() {
      expectComplete(
        Model.explore("an idle worker of a refused loop", bound: 1, stale: 0, allowTime: true) {
          Self.lastOneWaiting()
        })
    }

    /// The system refuses the loop's thread while a worker leaves the seat, and the monitor asks for the thread on that
    /// worker's behalf. One of them learns that no thread waits for events.
    private static func leftSeat() {
      let monitor = Runtime.shared.monitor
      monitor.ensureStarted()
      EventLoop.use(begins: false)
      ModelFaults.refusesThreads = true
      Model.thread("begins") {
        _ = EventLoop.shared.begin()
        Model.check(EventLoop.shared.takeSeat(), "no seat")
      }
      Model.run()
      let answers = Model.Log<Bool>()
      monitor.wantsEventLoop.store(false, ordering: .relaxed)
      Model.thread("asks") { answers.append(EventLoop.shared.startThread()) }
      Model.thread("leaves the seat") { EventLoop.shared.leaveSeat() }
      Model.thread("monitor") {
        guard monitor.wantsEventLoop.exchange(false, ordering: .acquiring) else { return }
        answers.append(EventLoop.shared.startThread())
      }
      Model.run()
      Model.check(
        answers.entries.contains(false) || monitor.wantsEventLoop.load(ordering: .relaxed),
        "no thread waits for events, and none knows it")
    }

    @Test func leavingTheSeatOfARefusedLoop() {
      expectComplete(
        Model.explore("a worker leaves the seat of a refused loop", bound: 2) { Self.leftSeat() })
      expectFound(PlantedFault(.relaxed, "EventLoop", "startThread()"), bound: 2) { Self.leftSeat() }
    }

    // MARK: The event queue

    private static let millisecond: UInt64 = 1_000_000

    private static func node(_ body: @escaping @Sendable () -> Void) -> NodePointer {
      NodeMagazine.make(.closure(body), level: .default)
    }

    /// Without an event queue, the loop's thread sleeps until the earliest timer is due; one that is set for a time
    /// before that ends its sleep. So does the event queue, once it can be made.
    private static func refusedQueue(onWall: Bool) {
      Model.setProcessors(1)
      EventLoop.use(begins: false)
      ModelFaults.refusesDescriptors = true
      let done = DispatchSemaphore(value: 0)
      let pipe = ModelKernel.make(.pipe)
      let queue = DispatchQueue(label: "delayed")
      Model.thread("client") {
        for delay in [5 * millisecond, 1 * millisecond] {
          let (due, isWall) = ((onWall ? Clock.wallAtStart : Clock.uptimeAtStart) + delay, onWall)
          let node = node {
            let now = isWall ? Clock.wallNow : Clock.uptimeNow
            Model.check(now == due, "\(Int64(now) - Int64(due)) ns late")
            done.signal()
          }
          queue.schedule(node, onWall ? .wall(due) : .uptime(due))
        }
        for _ in 0..<2 { done.wait() }
        ModelFaults.refusesDescriptors = false
        FileWatch(descriptor: pipe, interest: .read, owner: WatchOwner { done.signal() }).install()
        ModelKernel.write(pipe)
        done.wait()
      }
      Model.run()
    }

    @Test(arguments: [false, true]) func refusedEventQueues(onWall: Bool) {
      expectComplete(
        Model.explore("the event queue is refused", bound: 1, allowTime: true) {
          Self.refusedQueue(onWall: onWall)
        })
      expectFound(PlantedFault(.noWake, "EventLoop", "nudge()"), stale: 0, allowTime: true) {
        Self.refusedQueue(onWall: onWall)
      }
    }

    // MARK: Timers

    /// The kernel's timer is not set again for timers that are still due. The next timer that is set makes up for it.
    private static func refusedTimer() {
      Model.moveClock()
      Model.setProcessors(1)
      EventLoop.use()
      let queue = DispatchQueue(label: "delayed")
      let log = Model.Log<UInt64>()
      func schedule(_ index: UInt64, _ delay: UInt64) {
        queue.schedule(node { log.append(index) }, .uptime(Clock.uptimeAtStart + delay))
      }
      for index: UInt64 in 1...2 { schedule(index, millisecond) }
      Model.thread("clock") {
        ModelFaults.refusesTimers = true
        Model.advance(nanoseconds: millisecond)
      }
      Model.run()
      Model.thread("client") {
        ModelFaults.refusesTimers = false
        schedule(3, 2 * millisecond)
        Model.advance(nanoseconds: millisecond)
      }
      Model.run()
      Model.check(log.entries == [1, 2, 3] && EventLoop.timers.count == 0, "only \(log.entries) ran")
    }

    @Test func refusedTimers() {
      expectComplete(
        Model.explore("a timer is not set", bound: 1, freshBound: 2) { Self.refusedTimer() })
    }

    /// Due timers do not keep a thread from other events, even if each is set again.
    private static func endlessTimers() {
      EventLoop.use(begins: false)
      ModelFaults.refusesThreads = true
      Model.thread("waits for events") {
        guard let poller = EventLoop.shared.begin() else { return Model.check(false, "no event queue") }
        for _ in 0..<2 { LoopTimer(owner: Again()).set(.uptime(1)) }
        Model.check(EventLoop.timers.reportDue(poller), "no timer is left")
      }
      Model.run()
    }

    private final class Again: TimerOwner {
      func timerIsDue(_ timer: LoopTimer) { timer.set(.uptime(1)) }
    }

    @Test func timersWithoutEnd() {
      expectComplete(Model.explore("timers without end", bound: 1) { Self.endlessTimers() })
    }
  }
}
