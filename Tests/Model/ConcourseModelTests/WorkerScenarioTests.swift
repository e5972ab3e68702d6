import Testing

@testable import ConcourseModel

/// Single steps of workers: threads of the scenario have their records, so that few steps lead to the race.
extension ModelSuite {
  @Suite struct Workers {
    private static var band: Band { Runtime.shared.bands[0] }

    /// Counts a record's worker as active.
    private static func counted(_ worker: WorkerPointer, searches: Bool = false) -> WorkerPointer {
      band.counters.apply(.init(active: 1, searching: searches ? 1 : 0, threads: 1))
      return worker
    }

    /// Makes the calling thread the worker of a record.
    private static func become(_ worker: WorkerPointer) {
      // ORDERING: relaxed; as the engine stores it.
      worker.pointee.thread.store(CurrentThread.id, ordering: .relaxed)
      CurrentThread.state.pointee.worker = UnsafeMutableRawPointer(worker)
    }

    /// An awake monitor: nothing is deferred without its thread.
    private static func begin(processors: Int) {
      Model.setProcessors(processors)
      Runtime.shared.monitor.ensureStarted()
      Runtime.shared.monitor.watch()
      Model.run()
    }

    // MARK: Leaving work to others

    /// The calling thread, as the worker of a record, defers an entry.
    private static func `defer`(_ worker: WorkerPointer) {
      become(worker)
      band.noteItem()
    }

    /// A worker with a new record begins to defer entries, then another does. A third looks at both.
    private static func newRecords() {
      begin(processors: 4)
      let (looks, second) = (counted(band.takeRecord()), counted(band.takeRecord()))
      Model.thread("looks") { `defer`(looks) }
      Model.run()
      Model.thread("looks") {
        become(looks)
        _ = band.leavesWork(looks)
      }
      Model.thread("first") { `defer`(counted(band.takeRecord())) }
      Model.thread("second") { `defer`(second) }
      Model.run()
    }

    @Test func recordsOfDeferringWorkers() {
      expectComplete(Model.explore("a new record of a worker that defers", bound: 1) { Self.newRecords() })
      expectFound(PlantedFault(.relaxed, "Deferral", "begins(_:)")) { Self.newRecords() }
    }

    /// A worker parks while it is searching, so that the client wakes no other, and may leave the client's item to a
    /// second worker. That one parks, too, or begins to wait.
    private static func leavingAgainstSleep(secondWaits: Bool) {
      begin(processors: 2)
      let ran = Model.Log<Int>()
      let (first, second) = (counted(band.takeRecord(), searches: true), counted(band.takeRecord()))
      Model.thread("both") { for worker in [first, second] { `defer`(worker) } }
      Model.run()
      Model.background("first") {
        become(first)
        // Sees the second worker active.
        _ = band.leavesWork(first)
        if band.park(first, searching: true) { band.runWorker(first) }
      }
      Model.background("second") {
        become(second)
        if secondWaits {
          band.workerWillWait(second)
        } else if band.park(second, searching: false) {
          band.runWorker(second)
        }
      }
      Model.thread("client") { DispatchQueue.global().async { ran.append(1) } }
      Model.run()
      Model.check(ran.entries == [1], "the item waits for the monitor")
    }

    @Test(arguments: [false, true]) func nothingIsLeftToASleeper(secondWaits: Bool) {
      expectComplete(
        Model.explore("an item is left to a worker that sleeps", bound: 1, freshBound: 2) {
          Self.leavingAgainstSleep(secondWaits: secondWaits)
        })
      expectFound(PlantedFault(.stale, "Deferral", "includesOther(than:)")) {
        Self.leavingAgainstSleep(secondWaits: secondWaits)
      }
    }

    // MARK: The monitor goes to sleep

    /// The time of the monitor's last look, the fourth that finds nothing.
    private static let lastLook: UInt64 = 4_000_000

    /// A worker with a new record makes a queue runnable, and blocks until that has run.
    private static func newRecordAgainstDormancy() {
      begin(processors: 2)
      let queue = DispatchQueue(label: "kept")
      let hasRun = Box<UInt32>(0)
      Model.thread("worker") {
        Model.sleep(nanoseconds: lastLook)
        become(counted(band.takeRecord()))
        queue.async {
          // ORDERING: relaxed; it publishes nothing.
          hasRun.word.store(1, ordering: .relaxed)
          Futex.wake(hasRun.word, count: 1)
        }
        _ = Futex.wait(hasRun.word, expected: 0)
      }
      Model.run()
    }

    @Test func newRecordsAndDormancy() {
      expectComplete(
        Model.explore(
          "a new worker while the monitor goes to sleep", bound: 1, freshBound: 3, allowTime: true
        ) {
          Self.newRecordAgainstDormancy()
        })
      expectFound(PlantedFault(.stale, "WorkerRecord", "workers"), allowTime: true) {
        Self.newRecordAgainstDormancy()
      }
    }

    /// A lowered thread asks for a worker, or for the loop's thread; nothing else shows that the monitor must go on.
    private static func requestAgainstDormancy(forEvents: Bool) {
      begin(processors: 1)
      if forEvents { EventLoop.use(begins: false) }
      Model.thread("lowered") {
        CurrentThread.state.pointee.nice = 10
        Model.sleep(nanoseconds: lastLook)
        if forEvents {
          Runtime.shared.monitor.startEventLoop()
        } else {
          band.counters.apply(.init(active: 1, searching: 1, threads: 1))
          band.spawn()
        }
        Model.sleep(nanoseconds: lastLook)
      }
      Model.run()
      let isServed = forEvents ? EventLoop.shared.hasThread : band.counters.snapshot.parked == 1
      Model.check(isServed, "the request was forgotten")
    }

    @Test(arguments: [false, true]) func requests(forEvents: Bool) {
      expectComplete(
        Model.explore("a request while the monitor goes to sleep", bound: 1, freshBound: 3, allowTime: true) {
          Self.requestAgainstDormancy(forEvents: forEvents)
        })
      expectFound(PlantedFault(.stale, "Monitor", "somethingWaits()"), allowTime: true) {
        Self.requestAgainstDormancy(forEvents: forEvents)
      }
    }

    // MARK: Delivering

    /// A producer relies on the search of a worker that begins to deliver events, and blocks there until the producer's
    /// item has run.
    private static func postAgainstDelivery() {
      Model.setProcessors(2)
      Runtime.shared.monitor.ensureStarted()
      let hasRun = Box<UInt32>(0)
      let worker = counted(band.takeRecord(), searches: true)
      Model.thread("worker") {
        become(worker)
        // As when it parked.
        _ = band.hasWorkInTotalOrder
        band.beginDelivery(worker)
        _ = Futex.wait(hasRun.word, expected: 0)
      }
      Model.thread("producer") {
        // As for an item before.
        band.noteWork()
        DispatchQueue.global().async {
          // ORDERING: relaxed; it publishes nothing.
          hasRun.word.store(1, ordering: .relaxed)
          Futex.wake(hasRun.word, count: 1)
        }
      }
      Model.run()
    }

    @Test func postsAgainstDeliveries() {
      expectComplete(
        Model.explore("a post while a delivery begins", bound: 1, allowTime: true) {
          Self.postAgainstDelivery()
        })
      expectFound(
        PlantedFault(.noWrite, "Band+Worker", "beginDelivery(_:)"),
        PlantedFault(.stale, "Band", "noteDelivery()"),
        PlantedFault(.stale, "WorkList", "isEmptyInTotalOrder"), allowTime: true
      ) { Self.postAgainstDelivery() }
    }

    // MARK: Stealing

    /// A searcher takes over a busy worker's queue while the monitor goes to sleep. Both workers then block in calls
    /// unknown to the engine until the queue has run.
    private static func stealAgainstDormancy(_ steals: Count) {
      Model.setProcessors(2)
      let band = Runtime.shared.bands[0]
      let queue = DispatchQueue(label: "kept")
      let hasRun = Box<UInt32>(0)
      Runtime.shared.monitor.watch()
      func worker(_ name: String, at instant: UInt64, _ body: @escaping (WorkerPointer) -> Void) {
        let worker = counted(band.takeRecord())
        Model.thread(name) {
          become(worker)
          Model.sleep(nanoseconds: instant)
          body(worker)
          _ = Futex.wait(hasRun.word, expected: 0)
        }
      }
      // Before the monitor's last look, the fourth that finds nothing, so that it has started another entry by then.
      worker("owner", at: 3_500_000) { worker in
        worker.pointee.progress.wrappingAdd(1, ordering: .relaxed)
        queue.async {
          // ORDERING: relaxed; it publishes nothing.
          hasRun.word.store(1, ordering: .relaxed)
          Futex.wake(hasRun.word, count: 2)
        }
      }
      // At the time of that look.
      worker("thief", at: 4_000_000) { worker in
        guard let overdue = band.overdueCandidate(besides: worker), band.steal(overdue, for: worker) else {
          return
        }
        steals.value += 1
      }
      Model.run()
    }

    @Test func stealAgainstDormancy() {
      let steals = Count()
      let result = Model.explore(
        "steal while the monitor goes to sleep", bound: 1, freshBound: 3, allowTime: true
      ) {
        Self.stealAgainstDormancy(steals)
      }
      expectComplete(result)
      #expect(steals.value > 0, "no execution stole the queue")
      expectFound(PlantedFault(.noWrite, "Band", "keep(_:on:)"), allowTime: true) {
        Self.stealAgainstDormancy(steals)
      }
    }

    /// The thief runs the queue itself, and sees what the owner wrote.
    private static func stolenQueue() {
      begin(processors: 2)
      let queue = DispatchQueue(label: "stolen")
      let written = Model.Cell(0, "written")
      let (owner, thief) = (counted(band.takeRecord()), counted(band.takeRecord()))
      Model.thread("owner") {
        become(owner)
        written.write(1)
        queue.async { Model.check(written.read() == 1, "the item sees less than its submitter") }
      }
      Model.thread("thief") {
        become(thief)
        guard let overdue = band.overdueCandidate(besides: thief), band.steal(overdue, for: thief) else {
          return
        }
        // ORDERING: relaxed; the thread's own.
        if let node = thief.pointee.kept.exchange(nil, ordering: .relaxed) {
          node.run(for: nil)
        }
      }
      Model.run()
    }

    @Test func stealing() {
      expectComplete(Model.explore("a thief runs the queue", bound: 2) { Self.stolenQueue() })
    }
  }
}
