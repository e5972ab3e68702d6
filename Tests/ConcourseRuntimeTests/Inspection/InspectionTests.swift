import Glibc
import Testing

@testable import ConcourseEvents
@testable import ConcourseInspection
@testable import ConcourseRuntime

extension Crash {
  /// Each in a process of its own: pool and recording are of the whole process.
  @Suite("Inspection")
  struct InspectionTests {
    /// The next interval with something about this queue.
    fileprivate static func next(_ stream: StatisticsStream) throws -> Inspection.Statistics {
      let statistics = stream.wait() ?? nil
      return try #require(statistics)
    }

    /// The intervals until the queue has ended this number of items, in one.
    private static func sum(_ label: String, ended: Int, _ stream: StatisticsStream) throws -> [Inspection
      .QueueStatistics]
    {
      var found: [Inspection.QueueStatistics] = []
      #expect(
        awaitValue {
          guard let statistics = stream.wait() ?? nil else { return true }
          found += statistics.queues.filter { $0.queue.label == label }
          return found.reduce(0) { $0 + $1.ended } >= ended
        })
      return found
    }

    // MARK: Snapshots

    @Test("without statistics, a snapshot has the lasting queues, whose depths are not known")
    func lastingQueues() async {
      await #expect(processExitsWith: .success) {
        let queue = DispatchQueue(label: "test.inspected.unseen")
        queue.sync {}
        let snapshot = Inspection.snapshot()
        #expect(snapshot.queues.map(\.kind) == [.main, .global, .global, .global, .global, .global])
        #expect(snapshot.queues.map(\.label).contains("com.apple.root.utility-qos"))
        #expect(snapshot.queues.allSatisfy { $0.waiting == nil && $0.running == nil && $0.target == nil })
        #expect(snapshot.pool.bands.map(\.qosClass) == [.default, .utility, .background])
        #expect(snapshot.pool.limit == 512)
        // Nothing was made for it.
        #expect(Recording.memory == nil && !Recording.isOn)
      }
    }

    @Test("a snapshot knows the CPU quota before a second worker comes")
    func quota() async {
      await #expect(processExitsWith: .success) {
        precondition(!PoolSize.widthIsSettled)
        _ = Inspection.Pool.read()
        precondition(PoolSize.widthIsSettled)
      }
    }

    @Test("bands are added up over the shards of the pool, each kind by itself")
    func shards() {
      func band(_ name: String, _ number: Int, hasWork: Bool = false) -> Inspection.Band {
        Inspection.Band(
          name: name, qosClass: .default, threads: 16 * number, active: number, searching: 2 * number,
          waiting: 3 * number, stuck: 4 * number, parked: 5 * number, hasWork: hasWork)
      }
      let first = [band("a", 1), band("b", 10), band("c", 100, hasWork: true)]
      #expect(Inspection.Band.sums(first) == first)
      let second = [band("a", 2), band("b", 20, hasWork: true), band("c", 200)]
      let third = [band("a", 4), band("b", 40), band("c", 400)]
      #expect(
        Inspection.Band.sums(first + second + third)
          == [band("a", 7), band("b", 70, hasWork: true), band("c", 700, hasWork: true)])
    }

    @Test("a snapshot tells blocked workers from parked ones, and which thread waits for which queue")
    func blocked() async {
      await #expect(processExitsWith: .success) {
        ProcessQueues.shared.blockedThreads.patience = 1_000_000
        let held = DispatchQueue(label: "test.inspected.held")
        let (release, ended) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let before = DispatchTime.now()
        held.async { release.wait() }
        let waiter = Shared(UInt32(0))
        DispatchQueue.global().async {
          waiter.change { $0 = CurrentThread.id }
          held.sync {}
          ended.signal()
        }
        #expect(awaitValue { Inspection.snapshot().blockedThreads.count == 1 })
        // Both threads sleep in waits of the engine.
        #expect(awaitValue { Inspection.snapshot().pool.bands[0].waiting == 2 })
        let snapshot = Inspection.snapshot()
        let blocked = try #require(snapshot.blockedThreads.first)
        #expect(blocked.thread == waiter.value)
        #expect(blocked.reason == .turn)
        #expect(blocked.label == "test.inspected.held")
        #expect(blocked.queue == UInt(bitPattern: Unmanaged.passUnretained(held).toOpaque()))
        #expect(before <= blocked.since && blocked.since <= snapshot.time)
        let band = snapshot.pool.bands[0]
        #expect(band.threads == band.active + band.blocked + band.parked)
        #expect(snapshot.pool.blocked >= 2 && snapshot.pool.threads >= 2)
        release.signal()
        #expect(comes(ended))
        #expect(awaitValue { Inspection.snapshot().pool.blocked == 0 })
        #expect(Inspection.snapshot().blockedThreads.isEmpty)
      }
    }

    // MARK: Statistics

    @Test("each item counts once, in the interval in which it is submitted, starts and ends")
    func counts() async {
      await #expect(processExitsWith: .success) {
        let stream = try #require(StatisticsStream.begin(every: 0))
        #expect(Recording.isOn)
        let queue = DispatchQueue(label: "test.inspected.counts")
        // All events fit into a ring, also if the reader comes late.
        let size = Sanitizer.shrunk(10_000)
        for _ in 0..<size { queue.async {} }
        let found = try InspectionTests.sum("test.inspected.counts", ended: size, stream)
        #expect(found.reduce(0) { $0 + $1.submitted } == size)
        #expect(found.reduce(0) { $0 + $1.started } == size)
        #expect(found.reduce(0) { $0 + $1.ended } == size)
        #expect(found.reduce(0) { $0 + $1.run.count } == size)
        #expect(found.reduce(0) { $0 + $1.wait.count } == size)
        #expect(found.last?.queue.waiting == 0 && found.last?.queue.running == 0)
        #expect(found.allSatisfy { $0.queue.kind == .serial && $0.queue.id == found[0].queue.id })
        stream.cancel()
        #expect(!Recording.isOn)
        #expect(stream.wait() == .some(nil))
      }
    }

    @Test("depth, running items and times of an item that takes long")
    func times() async {
      await #expect(processExitsWith: .success) {
        let stream = try #require(StatisticsStream.begin(every: 0))
        let queue = DispatchQueue(label: "test.inspected.times", target: .global(qos: .utility))
        let (began, release) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        queue.async {
          began.signal()
          release.wait()
        }
        for _ in 0..<3 { queue.async {} }
        #expect(comes(began))
        var latest: Inspection.QueueStatistics?
        #expect(
          awaitValue {
            let statistics = stream.wait() ?? nil
            latest = statistics?.queues.first { $0.queue.label == "test.inspected.times" }
            return latest?.queue.waiting == 3 && latest?.queue.running == 1
          })
        let snapshot = Inspection.snapshot()
        let now = try #require(snapshot.queues.first { $0.label == "test.inspected.times" })
        #expect(now.waiting == 3 && now.running == 1)
        let target = snapshot.queues.first { $0.id == now.target }
        #expect(target?.label == "com.apple.root.utility-qos")
        let start = Clock.uptime()
        while Clock.uptime() < start + 20_000_000 { Processor.yield() }
        release.signal()
        let found = try InspectionTests.sum("test.inspected.times", ended: 4, stream)
        let longest = try #require(found.map(\.run.longest).max())
        #expect(longest >= .milliseconds(20))
        // The three behind it waited for it.
        #expect(found.flatMap { [$0.wait.longest] }.max()! >= .milliseconds(20))
        // It has run since `latest`.
        #expect(found.reduce(.zero) { $0 + $1.busy } >= .milliseconds(20))
        stream.cancel()
      }
    }

    @inline(never)
    private static func makeHere(_ label: String) -> DispatchQueue { DispatchQueue(label: label) }
    @inline(never)
    private static func makeThere() -> DispatchQueue { DispatchSerialQueue(label: "") }

    @Test("a queue without a label that is made while the process is recorded has the calls that made it")
    func creationStacks() async {
      await #expect(processExitsWith: .success) {
        let early = InspectionTests.makeHere("")
        let stream = try #require(StatisticsStream.begin(every: 0))
        let made = (0..<2).map { _ in InspectionTests.makeHere("") } + [InspectionTests.makeThere()]
        let queues = [early, InspectionTests.makeHere("test.inspected.named")] + made
        for queue in queues { queue.async {} }
        for queue in queues { queue.sync {} }
        let known = Inspection.snapshot().queues
        let stacks = try queues.map { queue in
          let address = UInt(bitPattern: Unmanaged.passUnretained(queue).toOpaque())
          return try #require(known.first { $0.id == address }).creationStack
        }
        #expect(stacks[0].isEmpty && stacks[1].isEmpty)
        #expect(stacks[2].count > 3 && stacks[2] == stacks[3])
        // The calls of both end in the same one; they begin in different ones.
        #expect(stacks[4].count > 3 && Set(stacks[4]) != Set(stacks[2]))
        #expect(!Set(stacks[4]).isDisjoint(with: stacks[2]))
        stream.cancel()
      }
    }

    @Test("two streams count the same items, each in its own intervals, and recording outlives the first")
    func twoStreams() async {
      await #expect(processExitsWith: .success) {
        let first = try #require(StatisticsStream.begin(every: 0))
        let queue = DispatchQueue(label: "test.inspected.two")
        queue.async {}
        #expect(
          try InspectionTests.sum("test.inspected.two", ended: 1, first).reduce(0) { $0 + $1.started } == 1)
        let second = try #require(StatisticsStream.begin(every: 0))
        for _ in 0..<10 { queue.async {} }
        for stream in [second, first] {
          let found = try InspectionTests.sum("test.inspected.two", ended: 10, stream)
          // What was before the second is not in it.
          #expect(found.reduce(0) { $0 + $1.submitted } == 10)
        }
        first.cancel()
        #expect(Recording.isOn)
        queue.async {}
        #expect(
          try InspectionTests.sum("test.inspected.two", ended: 1, second).reduce(0) { $0 + $1.started } == 1)
        second.cancel()
        second.cancel()
        #expect(!Recording.isOn)
      }
    }

    @Test("a tool that records switches off only what it has switched on, and so does a stream")
    func besideTool() async {
      await #expect(processExitsWith: .success) {
        let stream = try #require(StatisticsStream.begin(every: 0))
        Recording.begin(until: .max)
        Recording.end()
        #expect(Recording.isOn)
        Recording.begin(until: .max)
        stream.cancel()
        #expect(Recording.isOn)
        Recording.end()
        #expect(!Recording.isOn)
      }
    }

    @Test("events that are overwritten before they are read are counted as lost, and depths begin anew")
    func lost() async {
      await #expect(processExitsWith: .success) {
        let stream = try #require(StatisticsStream.begin(every: 0))
        let queue = DispatchQueue(label: "test.inspected.lost")
        // While the reader cannot come, a worker makes more events than a ring holds: the start of its item is gone, the
        // submission by another worker is not.
        let (isStopped, isFull) = (Shared(false), Shared(false))
        DispatchQueue(label: "test.inspected.submitter").async {
          while !isStopped.value { Processor.yield() }
          queue.async {
            for _ in 0..<40000 {
              Recording.sourceRaised(UnsafeRawPointer(bitPattern: 16)!, value: 0, kind: 0, queue: 0)
            }
            isFull.change { $0 = true }
          }
          while !isFull.value { Processor.yield() }
        }
        StatisticsReader.shared.whileStopped {
          isStopped.change { $0 = true }
          while !isFull.value { Processor.yield() }
        }
        var lost = 0
        #expect(
          awaitValue {
            lost += (stream.wait() ?? nil)?.lost ?? 0
            return lost > 0
          })
        queue.async {}
        let found = try InspectionTests.sum("test.inspected.lost", ended: 1, stream)
        #expect(found.last?.queue.waiting == 0)
        stream.cancel()
      }
    }

    @Test("a slow client gets longer intervals, which follow one another")
    func backPressure() async {
      await #expect(processExitsWith: .success) {
        let stream = try #require(StatisticsStream.begin(every: 20_000_000))
        let queue = DispatchQueue(label: "test.inspected.slow")
        var end: DispatchTime?
        var submitted = 0
        for round in 0..<5 {
          for _ in 0..<10 { queue.async {} }
          queue.sync {}
          // Late by nearly an interval, each second time.
          let isLate = round % 2 == 1
          if isLate, let end { while DispatchTime.now() < end + .milliseconds(38) { Processor.yield() } }
          let statistics = try InspectionTests.next(stream)
          if let end { #expect(statistics.start == end) }
          #expect(statistics.duration >= .milliseconds(isLate ? 38 : 20))
          submitted += statistics.queues.filter { $0.queue.label == queue.label }.reduce(0) {
            $0 + $1.submitted
          }
          end = statistics.end
        }
        #expect(submitted == 50)
        stream.cancel()
      }
    }

    @Test("an observation calls its handler on the queue until it is cancelled or released")
    func observation() async {
      await #expect(processExitsWith: .success) {
        let queue = DispatchQueue(label: "test.inspected.observer")
        let called = DispatchSemaphore(value: 0)
        var observation: Inspection.Observation? = Inspection.observe(every: .milliseconds(1), on: queue) {
          _ in
          dispatchPrecondition(condition: .onQueue(queue))
          called.signal()
        }
        #expect(observation?.isPossible == true)
        for _ in 0..<3 { #expect(comes(called)) }
        observation?.cancel()
        #expect(!Recording.isOn)
        observation = Inspection.observe(every: .milliseconds(1), on: queue) { _ in called.signal() }
        #expect(Recording.isOn)
        observation = nil
        #expect(!Recording.isOn)
      }
    }

    @Test("a thread that waits for an interval goes on when the stream is cancelled; a second one is refused")
    func cancelled() async {
      await #expect(processExitsWith: .success) {
        let stream = try #require(StatisticsStream.begin(every: .max))
        let ended = DispatchSemaphore(value: 0)
        startThread {
          #expect(stream.wait() == .some(nil))
          ended.signal()
        }
        #expect(awaitValue { StatisticsReader.shared.isAwaited(stream) })
        #expect(stream.wait() == nil)
        stream.cancel()
        #expect(comes(ended))
      }
    }

    @Test("thousands of queues, made and freed while four threads take snapshots")
    func manyQueues() async {
      await #expect(processExitsWith: .success) {
        let stream = try #require(StatisticsStream.begin(every: 0))
        let group = DispatchGroup()
        let isOver = Shared(false)
        for _ in 0..<4 {
          group.enter()
          startThread {
            while !isOver.value { _ = Inspection.snapshot() }
            group.leave()
          }
        }
        let size = Sanitizer.shrunk(5000)
        var (submitted, ended) = (0, 0)
        for index in 0..<size {
          DispatchQueue(label: "test.inspected.many.\(index)").async {}
          submitted += 1
        }
        #expect(
          awaitValue {
            guard let statistics = stream.wait() ?? nil else { return true }
            ended += statistics.queues.reduce(0) { $0 + $1.ended }
            return ended >= submitted || statistics.lost > 0
          })
        isOver.change { $0 = true }
        #expect(empties(group))
        #expect(ended == submitted)
        stream.cancel()
      }
    }
  }

  @Suite("Inspection after fork", .enabled(if: !Sanitizer.isThread))
  struct InspectionForkTests {
    @Test("a child has an empty pool and no statistics, and its parent's streams have ended")
    func child() async {
      await #expect(processExitsWith: .success) {
        let queue = DispatchQueue(label: "test.inspected.parent")
        let stream = try #require(StatisticsStream.begin(every: 0))
        queue.async {}
        // Swift makes types on first use, under a lock that the child may find held.
        for _ in 0..<2 { _ = try InspectionTests.next(stream) }
        _ = Inspection.snapshot()
        let status = inForkedChild {
          let snapshot = Inspection.snapshot()
          var failed: Int32 = 0
          if snapshot.pool.threads != 0 { failed |= 1 }
          if !snapshot.queues.allSatisfy({ $0.waiting == nil }) { failed |= 2 }
          if StatisticsStream.begin(every: 0) != nil { failed |= 4 }
          if stream.wait() != .some(nil) { failed |= 8 }
          stream.cancel()
          if Recording.isOn { failed |= 16 }
          _exit(failed)
        }
        #expect(status == 0)
        // The parent goes on.
        #expect((stream.wait() ?? nil) != nil)
        stream.cancel()
      }
    }
  }
}

extension Inspection.Statistics: Equatable {
  public static func == (one: Self, other: Self) -> Bool { one.start == other.start && one.end == other.end }
}
