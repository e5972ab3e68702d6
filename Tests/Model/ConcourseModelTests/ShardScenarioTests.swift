import Testing

@testable import ConcourseModel

/// Two shards of one processor each: entries that workers of one take from the other.
extension ModelSuite {
  @Suite struct Shards {
    /// - Parameter parts: The processors of the shards.
    private static func begin(parts: [Int] = [1, 1]) {
      Model.setTopology("\(parts.count)x1")
      _ = Runtime.shared
      for (shard, part) in parts.enumerated() {
        // ORDERING: relaxed; nothing runs yet.
        PoolSize.part(of: shard).pointee.store(part, ordering: .relaxed)
      }
    }

    /// The calling thread submits to a shard from now on.
    private static func enter(_ shard: Int) {
      CurrentThread.state.pointee.roots = UInt32(Shard(number: shard).firstRoot)
    }

    // MARK: Theft

    private static func push(_ ran: Count) {
      Runtime.root(at: .default)._withUnsafeGuaranteedRef { $0.push(testEntry(ran)) }
    }

    /// The workers of two shards take entries of a third at once, which has none.
    private static func theft() {
      begin(parts: [0, 1, 1])
      let ran = (0..<3).map { _ in Count() }
      Model.thread("client") { for entry in ran { push(entry) } }
      Model.run()
      Model.check(ran.allSatisfy { $0.value == 1 }, "entries ran \(ran.map(\.value)) times")
      Monitoring.checkCounters()
    }

    @Test func entriesMoveBetweenShards() {
      expectComplete(
        Model.explore("workers take entries of another shard", bound: 1, stale: 0) { Self.theft() })
      expectFound(PlantedFault(.noWrite, "Lock", "tryLock()"), bound: 2, stale: 0) { Self.theft() }
    }

    /// The other shard gets an entry of its own while its worker looks for entries of the full one.
    private static func exchange() {
      begin()
      let ran = [Count(), Count()]
      Model.thread("one") {
        enter(0)
        push(ran[0])
      }
      Model.thread("other") {
        enter(1)
        push(ran[1])
      }
      Model.run()
      Model.check(ran.allSatisfy { $0.value == 1 }, "entries ran \(ran.map(\.value)) times")
      Monitoring.checkCounters()
    }

    @Test func eachShardWakesItsWorkers() {
      expectComplete(Model.explore("two shards get entries at once", bound: 1) { Self.exchange() })
    }

    // MARK: Help alone

    /// A shard without processors of its own, as a small quota leaves it: the other's worker runs what is submitted there,
    /// also if it has just looked there in vain, or parks.
    private static func withoutProcessors() {
      begin(parts: [1, 0])
      let ran = Count()
      Model.thread("here") {
        enter(0)
        push(ran)
      }
      Model.thread("there") {
        enter(1)
        push(ran)
      }
      Model.run()
      Model.check(ran.value == 2, "\(ran.value) of two entries ran")
      Monitoring.checkCounters()
    }

    @Test func aShardWithoutProcessorsIsServed() {
      expectComplete(Model.explore("a shard without processors", bound: 1) { Self.withoutProcessors() })
      expectFound(
        PlantedFault(.noWrite, "Shard", "insert(_:)"), PlantedFault(.stale, "Shard", "shardsInTotalOrder")
      ) { Self.withoutProcessors() }
    }

    /// The only worker never runs out of entries of its own. An entry of the other shard has its turn all the same, at
    /// each sixth in the model.
    private static func rotation() {
      begin(parts: [1, 0])
      let log = Model.Log<String>()
      @Sendable func feed() {
        DispatchQueue.global().async {
          log.append("flood")
          if log.entries.count == 4 {
            enter(1)
            DispatchQueue.global().async { log.append("probe") }
            enter(0)
          }
          if log.entries.count < 24 && !log.entries.contains("probe") { feed() }
        }
      }
      Model.thread("client") {
        enter(0)
        feed()
      }
      Model.run()
      let before = (log.entries.firstIndex(of: "probe") ?? .max) - 4
      Model.check(before <= 6, "\(before) entries before the item: \(log.entries)")
    }

    @Test func theWorkersOfOtherShardsTakeTurns() throws {
      expectComplete(
        Model.explore("a flood beside a full shard", bound: 0, allowTime: true) { Self.rotation() })
      let result = Model.explore("a flood without turns", bound: 0, allowTime: true) {
        ModelFaults.never = "rootPeriod"
        Self.rotation()
      }
      let failure = try #require(result.failure, "\(result)")
      #expect(failure.kind == .check && failure.message.contains("before the item"), "\(failure)")
    }

    // MARK: Retiring

    /// The only worker of both shards is idle for so long that it ends, before an entry of the other shard needs its help,
    /// or just then.
    private static func retirement(before: UInt64) {
      begin(parts: [1, 0])
      let done = DispatchSemaphore(value: 0)
      Model.thread("client") {
        for shard in [0, 1, 0] {
          if shard == 1 { Model.sleep(nanoseconds: PoolSize.idleLifetime + before) }
          enter(shard)
          DispatchQueue.global().async { done.signal() }
          done.wait()
        }
      }
      Model.run()
      Monitoring.checkCounters()
    }

    @Test(arguments: [0, 1]) func aWorkerRetiresWhileAnotherShardNeedsIt(before: UInt64) {
      expectComplete(
        Model.explore("a worker retires beside a full shard", bound: 1, stale: 0, allowTime: true) {
          Self.retirement(before: before)
        })
    }

    // MARK: Processors that come and go

    /// The processors of one shard go to the other while entries wait there, as after a change of the quota or of the
    /// affinity mask. If the worker steps back before that, the monitor finds room in the other shard at its next look.
    private static func processorsMove() {
      begin(parts: [1, 0])
      let done = DispatchSemaphore(value: 0)
      Model.thread("client") {
        enter(0)
        for _ in 0..<2 { DispatchQueue.global().async { done.signal() } }
        for _ in 0..<2 { done.wait() }
      }
      Model.thread("system") {
        for (shard, part) in [0, 1].enumerated() {
          // ORDERING: relaxed; as the engine does it.
          PoolSize.part(of: shard).pointee.store(part, ordering: .relaxed)
        }
        Runtime.shared.monitor.stepBackEverywhere()
      }
      Model.run()
      Monitoring.checkCounters()
    }

    @Test func entriesOutliveTheProcessorsOfTheirShard() {
      expectComplete(
        Model.explore("processors move to another shard", bound: 1, stale: 0, allowTime: true) {
          Self.processorsMove()
        })
      expectFound(PlantedFault(.noWake, "ThreadEvent", "signal()"), allowTime: true) { Self.processorsMove() }
    }

    // MARK: Batches

    /// The first of two entries that a busy worker takes at once waits for the second.
    /// - Parameter isKnown: Whether it waits in one of the engine's waits.
    private static func waitInABatch(isKnown: Bool) {
      begin()
      let (semaphore, done) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
      let hasRun = Box<UInt32>(0)
      Model.thread("client") {
        enter(0)
        DispatchQueue.global().async {}
        DispatchQueue.global().async {
          if isKnown { semaphore.wait() } else { _ = Futex.wait(hasRun.word, expected: 0) }
          done.signal()
        }
        DispatchQueue.global().async {
          semaphore.signal()
          // ORDERING: relaxed; it publishes nothing.
          hasRun.word.store(1, ordering: .relaxed)
          Futex.wake(hasRun.word, count: 1)
        }
        DispatchQueue.global().async {}
        done.wait()
      }
      Model.run()
      Monitoring.checkCounters()
    }

    @Test func entriesBehindAWaitingOneAreReleased() {
      expectComplete(
        Model.explore("a wait in a batch", bound: 0) { Self.waitInABatch(isKnown: true) })
      expectFound(PlantedFault(.noWrite, "Batch", "publish(_:)"), bound: 1, stale: 0) {
        Self.waitInABatch(isKnown: true)
      }
    }

    @Test func entriesBehindABlockedOneAreReleased() {
      expectComplete(
        Model.explore("a block in a batch", bound: 1, stale: 0, allowTime: true) {
          Self.waitInABatch(isKnown: false)
        })
      expectFound(PlantedFault(.noWrite, "Batch", "publish(_:)"), bound: 1, stale: 0) {
        Self.waitInABatch(isKnown: false)
      }
    }

    /// Two workers of one shard and one of another run entries, which they take one by one, in batches, and from another's
    /// batch.
    private static func manyTakers() {
      begin(parts: [2, 1])
      let ran = (0..<5).map { _ in Count() }
      Model.thread("client") {
        enter(0)
        for entry in ran { push(entry) }
      }
      Model.run()
      Model.check(ran.allSatisfy { $0.value == 1 }, "entries ran \(ran.map(\.value)) times")
      Monitoring.checkCounters()
    }

    @Test func eachEntryOfABatchRunsOnce() {
      expectComplete(Model.explore("batches of two workers", bound: 1, stale: 0) { Self.manyTakers() })
    }

    /// One worker keeps the order of submission, whatever it takes at once.
    @Test func oneWorkerRunsBatchesInOrder() {
      expectComplete(
        Model.explore("batches of one worker", bound: 1, stale: 0) {
          Self.begin(parts: [1, 0])
          let log = Model.Log<Int>()
          Model.thread("client") {
            Self.enter(0)
            for number in 0..<8 { DispatchQueue.global().async { log.append(number) } }
          }
          Model.run()
          Model.check(log.entries == Array(0..<8), "\(log.entries)")
        })
    }

    /// An entry computes without end, and the one behind it is in the same batch. The other worker never runs out of
    /// entries, and so never searches.
    private static func overdueBatch() {
      begin(parts: [2, 0])
      let log = Model.Log<String>()
      @Sendable func isOver() -> Bool { log.entries.count >= 60 || log.entries.contains("probe") }
      @Sendable func feed() {
        DispatchQueue.global().async {
          log.append("flood")
          if log.entries.count == 6 {
            DispatchQueue.global().async { while !isOver() { Processor.pause() } }
            DispatchQueue.global().async { log.append("probe") }
            log.append("submitted")
          }
          if !isOver() { feed() }
        }
      }
      Model.thread("client") {
        enter(0)
        for _ in 0..<3 { feed() }
      }
      Model.run()
      // The flood may end before its submitter goes on.
      guard let submitted = log.entries.firstIndex(of: "submitted") else { return }
      let before = (log.entries.firstIndex(of: "probe") ?? .max) - submitted
      Model.check(before <= 12, "\(before) entries before the item: \(log.entries)")
    }

    @Test func overdueBatchesAreTakenBack() throws {
      expectComplete(
        Model.explore("an overdue batch", bound: 1, stale: 0, allowTime: true) { Self.overdueBatch() })
      expectFound(PlantedFault(.noWrite, "Batch", "add(batchOf:)"), bound: 1, stale: 0) {
        Self.overdueBatch()
      }
    }
  }
}
