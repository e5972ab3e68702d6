import Testing

@testable import ConcourseModel

/// The monitor while time passes: it replaces workers that block in calls unknown to the engine, and counts each of
/// them once. And forks, at any moment of what the other threads do.
extension ModelSuite {
  @Suite struct Monitoring {
    /// A call unknown to the engine that blocks until another thread opens it.
    final class Gate: Sendable {
      private let word = ConcourseModel.Atomic<UInt32>(0)

      func open() {
        // ORDERING: sequentially consistent, as everything in the model.
        word.store(1, ordering: .sequentiallyConsistent)
        Futex.wake(word, count: .max)
      }

      func pass() {
        // ORDERING: as above.
        while word.load(ordering: .sequentiallyConsistent) == 0 { _ = Futex.wait(word, expected: 0) }
      }
    }

    /// All workers rest, and each is counted as parked.
    static func checkCounters() {
      for band in Runtime.shared.bands {
        let now = band.counters.snapshot
        Model.check(
          now.active == 0 && now.searching == 0 && now.parked == now.threads, "\(band.name): \(now)")
      }
    }

    // MARK: Blocked workers

    /// An item blocks until a later one has run, in a call that the pool does not know.
    private static func blockedWorker() {
      Model.setProcessors(1)
      let (gate, done) = (Gate(), DispatchSemaphore(value: 0))
      Model.thread("client") {
        DispatchQueue.global().async {
          gate.pass()
          DispatchQueue.global().async {
            // ORDERING: relaxed; the worker's own, which the monitor changes only while time passes.
            let status = WorkerThread.current!.pointee.status.load(ordering: .relaxed)
            Model.check(status == WorkerRecord.Status.active, "a worker without a count runs an item")
            done.signal()
          }
        }
        DispatchQueue.global().async { gate.open() }
        done.wait()
      }
      Model.run()
      checkCounters()
    }

    @Test func givingUpAndRejoining() {
      expectComplete(
        Model.explore("a blocked worker is given up and comes back", bound: 2, stale: 0, allowTime: true) {
          Self.blockedWorker()
        })
      expectFound(
        PlantedFault(.noWrite, "Monitor+Replacement", "giveUp(_:of:)"),
        PlantedFault(.noWrite, "Band", "rejoin(_:as:_:)"), stale: 0, allowTime: true
      ) { Self.blockedWorker() }
    }

    /// A worker waits within a section in which it counts as waiting.
    private static func waitInASection() {
      Model.setProcessors(1)
      let (posted, ended) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
      Model.thread("client") {
        DispatchQueue.global().async {
          BlockedSection.run { posted.wait() }
          ended.signal()
        }
        DispatchQueue.global().async { posted.signal() }
        ended.wait()
      }
      Model.run()
      checkCounters()
    }

    @Test func waitingWithinASection() {
      expectComplete(Model.explore("a wait within a blocked section", bound: 1) { Self.waitInASection() })
    }

    /// A worker makes a queue runnable, and blocks until that queue has run: the monitor moves it.
    private static func keptQueue() {
      Model.setProcessors(1)
      let (gate, done) = (Gate(), DispatchSemaphore(value: 0))
      let kept = DispatchQueue(label: "kept")
      Model.thread("client") {
        DispatchQueue.global().async {
          kept.async { gate.open() }
          gate.pass()
          done.signal()
        }
        done.wait()
      }
      Model.run()
      checkCounters()
    }

    @Test func movingAKeptQueue() {
      expectComplete(
        Model.explore("the queue that a blocked worker keeps", bound: 3, stale: 0, allowTime: true) {
          Self.keptQueue()
        })
      expectFound(PlantedFault(.noWrite, "Band", "keep(_:on:)"), stale: 0, allowTime: true) {
        Self.keptQueue()
      }
    }

    /// Items compute while a later one waits: the monitor adds a worker for the second, and one more for the third.
    private static func computingWorkers() {
      Model.setProcessors(1)
      let log = Model.Log<String>()
      let done = DispatchSemaphore(value: 0)
      Model.thread("client") {
        for name in ["first", "second"] {
          DispatchQueue.global().async {
            Model.compute(nanoseconds: 40_000_000)
            log.append(name)
            done.signal()
          }
        }
        DispatchQueue.global().async { log.append("third") }
        for _ in 0..<2 { done.wait() }
      }
      Model.run()
      Model.check(log.entries == ["third", "first", "second"], "\(log.entries)")
      checkCounters()
    }

    @Test func replacingComputingWorkers() {
      expectComplete(
        Model.explore("items compute while one waits", bound: 1, stale: 0, allowTime: true) {
          Self.computingWorkers()
        })
      expectFound(
        PlantedFault(.noWrite, "Monitor+Replacement", "giveUp(_:of:)"), stale: 0, allowTime: true
      ) { Self.computingWorkers() }
      let result = Model.explore("computing workers are not replaced", bound: 0, stale: 0, allowTime: true) {
        ModelFaults.never = "overrun"
        Self.computingWorkers()
      }
      #expect(result.failure != nil, "\(result)")
    }

    /// Items of two levels compute while more of both wait: the lowered band is held back until the default one has begun
    /// its last item, and then goes on.
    private static func competingLevels() {
      Model.setProcessors(1)
      let log = Model.Log<String>()
      let done = DispatchSemaphore(value: 0)
      Model.thread("client") {
        for (name, level) in [("a", DispatchQoS.QoSClass.default), ("b", .utility)] {
          for number in 1...2 {
            DispatchQueue.global(qos: level).async {
              log.append("\(name)\(number)")
              Model.compute(nanoseconds: name == "a" ? 12_000_000 : 6_000_000)
              done.signal()
            }
          }
        }
        for _ in 0..<4 { done.wait() }
      }
      Model.run()
      Model.check(log.entries.last == "b2", "the last item was not last: \(log.entries)")
      Model.check(!Runtime.shared.bands[1].isHeldBack, "a band is held back for good")
      checkCounters()
    }

    @Test func sharingTime() {
      expectComplete(
        Model.explore("levels compete", bound: 1, stale: 0, allowTime: true) { Self.competingLevels() })
      expectFound(PlantedFault(.noWrite, "Monitor+Shares"), stale: 0, allowTime: true) {
        Self.competingLevels()
      }
    }

    /// A lowered band that was held back when the monitor went to sleep, or had no work any more, gets its work done.
    private static func bandLetGo() {
      Model.setProcessors(1)
      let runtime = Runtime.shared
      runtime.monitor.shares.begin()
      // ORDERING: relaxed; the scenario's body comes first.
      runtime.bands[1].heldBack.store(true, ordering: .relaxed)
      let done = DispatchSemaphore(value: 0)
      Model.thread("client") {
        DispatchQueue.global(qos: .utility).async { done.signal() }
        done.wait()
      }
      Model.run()
      checkCounters()
    }

    @Test func lettingABandGo() {
      expectComplete(
        Model.explore("a band is let go", bound: 2, stale: 0, allowTime: true) { Self.bandLetGo() })
      expectFound(PlantedFault(.noWrite, "Monitor+Shares"), stale: 0, allowTime: true) { Self.bandLetGo() }
    }

    /// The pool is at its cap, and each of its threads waits for an item that has none.
    private static func starvedBand() {
      Model.setProcessors(1)
      PoolSize.cap = 1
      let steps = [DispatchSemaphore(value: 0), DispatchSemaphore(value: 0)]
      Model.thread("client") {
        DispatchQueue.global().async {
          steps[0].wait()
          steps[1].signal()
        }
        DispatchQueue.global().async { steps[0].signal() }
        steps[1].wait()
      }
      Model.run()
      checkCounters()
    }

    @Test func feedingTheStarved() {
      let cap = PoolSize.cap
      defer { PoolSize.cap = cap }
      expectComplete(
        Model.explore("a band at the cap", bound: 3, stale: 0, allowTime: true) { Self.starvedBand() })
      expectFound(
        PlantedFault(.noWrite, "Monitor+Replacement", "relieveStarvation(of:waiting:begun:)"), stale: 0,
        allowTime: true
      ) { Self.starvedBand() }
    }

    /// A lowered thread asks for a worker, or sets the first timer, which needs the loop's thread, while the monitor
    /// goes to sleep.
    private static func requestAgainstDormancy(forTimer: Bool) {
      Model.setProcessors(1)
      if forTimer { EventLoop.use(begins: false) }
      let done = DispatchSemaphore(value: 0)
      Runtime.shared.monitor.ensureStarted()
      Runtime.shared.monitor.watch()
      Model.thread("lowered") {
        CurrentThread.state.pointee.nice = 10
        // At the time of the monitor's last look.
        Model.sleep(nanoseconds: 4_000_000)
        if forTimer {
          LoopTimer(owner: Signal { done.signal() }).set(.uptime(Clock.uptime() + 1_000_000))
        } else {
          DispatchQueue.global().async { done.signal() }
        }
        done.wait()
      }
      Model.run()
      checkCounters()
    }

    private final class Signal: TimerOwner {
      private let body: @Sendable () -> Void
      init(_ body: @escaping @Sendable () -> Void) { self.body = body }
      func timerIsDue(_ timer: LoopTimer) { body() }
    }

    @Test(arguments: [false, true]) func requestsOfLoweredThreads(forTimer: Bool) {
      expectComplete(
        Model.explore(
          "a lowered thread asks for \(forTimer ? "the loop's thread" : "a worker")", bound: 1, freshBound: 3,
          allowTime: true
        ) { Self.requestAgainstDormancy(forTimer: forTimer) })
    }

    @Test func faultsOfRequestsAreFound() {
      expectFound(PlantedFault(.noWrite, "Band+Threads", "spawn()"), stale: 0, allowTime: true) {
        Self.requestAgainstDormancy(forTimer: false)
      }
      expectFound(
        PlantedFault(.stale, "Monitor", "somethingWaits()"),
        PlantedFault(.noWrite, "Monitor", "startEventLoop()"),
        stale: 0, allowTime: true
      ) { Self.requestAgainstDormancy(forTimer: true) }
    }

    // MARK: The first item of all

    /// The only worker's item waits outside the engine for the item that it has submitted, while another thread makes the
    /// monitor for the first worker of a lowered band.
    private static func firstItem() {
      Model.setProcessors(1)
      let gate = Gate()
      let done = DispatchSemaphore(value: 0)
      Model.thread("client") {
        DispatchQueue.global().async {
          DispatchQueue.global().async { gate.open() }
          gate.pass()
          done.signal()
        }
        done.wait()
      }
      Model.thread("other") { DispatchQueue.global(qos: .utility).async {} }
      Model.run()
      checkCounters()
    }

    @Test func theFirstItemIsNotLeftToADormantMonitor() {
      expectComplete(
        Model.explore("the first item is deferred", bound: 1, stale: 0, allowTime: true) { Self.firstItem() })
    }

    /// The first worker of all is lowered, and its first item needs a second one before its maker goes on.
    private static func loweredFirstItem() {
      Model.setProcessors(2)
      let done = DispatchSemaphore(value: 0)
      Model.thread("client") {
        let queue = DispatchQueue.global(qos: .utility)
        queue.async { for _ in 0..<2 { queue.async { done.signal() } } }
        for _ in 0..<2 { done.wait() }
      }
      Model.run()
      checkCounters()
    }

    @Test func noLoweredThreadMakesTheMonitor() {
      expectComplete(
        Model.explore("the first worker is lowered", bound: 1, stale: 0, allowTime: true) {
          Self.loweredFirstItem()
        })
    }

    // MARK: Retiring

    /// A worker's idle time ends before it is woken, or just then. It waits for events, or not.
    private static func retirement(forEvents: Bool, before: UInt64) {
      Model.setProcessors(1)
      if forEvents { EventLoop.use() }
      let done = DispatchSemaphore(value: 0)
      Model.thread("client") {
        DispatchQueue.global().async { done.signal() }
        done.wait()
        Model.sleep(nanoseconds: PoolSize.idleLifetime + before)
        for _ in 0..<2 {
          DispatchQueue.global().async { done.signal() }
          done.wait()
        }
      }
      Model.run()
      checkCounters()
    }

    @Test(arguments: [false, true], [0, 1]) func retiringAgainstWork(forEvents: Bool, before: UInt64) {
      expectComplete(
        Model.explore(
          "a worker retires\(forEvents ? " from the event loop" : "")", bound: 1, stale: 0, allowTime: true
        ) { Self.retirement(forEvents: forEvents, before: before) })
    }

    // MARK: Forks

    private static let trap = "in a forked child"

    /// The child of a fork may use idle queues. What is busy traps, and never hangs.
    private static func forkedChild(usesBusy: Bool) {
      Model.setProcessors(1)
      let (idle, busy) = (DispatchQueue(label: "idle"), DispatchQueue(label: "busy"))
      let group = DispatchGroup()
      let log = Model.Log<String>()
      Model.thread("parent") {
        busy.async(group: group) {}
        busy.sync {}
      }
      Model.thread("forks") {
        Process.fork()
        if usesBusy {
          busy.sync {}
          DispatchQueue.global().async(group: group) {}
          group.wait()
        }
        idle.sync { log.append("idle") }
      }
      Model.run()
      Model.check(usesBusy || log.entries == ["idle"], "\(log.entries)")
    }

    @Test func forks() {
      expectComplete(
        Model.explore("a forked child", bound: 3, stale: 0) { Self.forkedChild(usesBusy: false) })
      expectComplete(
        Model.explore("a forked child, busy", bound: 3, stale: 0, allowTime: true, allowedTrap: Self.trap) {
          Self.forkedChild(usesBusy: true)
        })
    }

    @Test func aForkThatIsNotNotedIsFound() {
      let result = Model.explore(
        "a fork that is not noted", bound: 2, stale: 0, allowTime: true, allowedTrap: Self.trap
      ) {
        ModelFaults.missesForks = true
        Self.forkedChild(usesBusy: true)
      }
      #expect(result.failure != nil, "\(result)")
    }
  }
}
