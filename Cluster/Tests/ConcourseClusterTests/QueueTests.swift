import Concourse
import ConcourseCluster
import Testing

/// The interface, on each engine.
@Suite(.timeLimit(.minutes(10))) struct QueueTests {
  struct Photo: Codable, Hashable, Sendable {
    var name: String
    var sizes: [Int]
  }

  @Test(arguments: EngineKind.allCases) func itemsArriveAsTheyWereSubmitted(on engine: EngineKind)
    async throws
  {
    let cluster = try await engine.cluster()
    let photos = ClusterQueue<Photo>(label: engine.label(), attributes: .concurrent, on: cluster)
    let log = Log<Photo>()
    let sent = (1...20).map { Photo(name: "photo \($0) \u{1F440}", sizes: [$0, 2 * $0]) }
    // Half of them before there is a worker.
    for photo in sent.prefix(10) { #expect(try await photos.async(photo) == .stored) }
    try await eventually { try await photos.pendingCount() == 10 }
    let registration = try await photos.handle(width: 4) { log.append($0) }
    for photo in sent.dropFirst(10) { try await photos.async(photo) }
    #expect(Set(await log.until(20)) == Set(sent))
    registration.cancel()
    await registration.drained()
    try await eventually { try await photos.pendingCount() == 0 }
    #expect(try await photos.failedItems().isEmpty)
    await cluster.shutdown()
    #expect(log.all.count == 20)
  }

  @Test(arguments: EngineKind.allCases) func serialQueueKeepsOrderOnThreeWorkers(on engine: EngineKind)
    async throws
  {
    let cluster = try await engine.cluster()
    let queue = ClusterQueue<Int>(label: engine.label(), on: cluster)
    let (log, gauge) = (Log<Int>(), Gauge())
    for worker in 1...3 {
      _ = try await queue.handle(width: worker) { item in
        gauge.enter()
        await Task.yield()
        log.append(item)
        gauge.leave()
      }
    }
    for item in 0..<100 { try await queue.async(item) }
    #expect(await log.until(100) == Array(0..<100))
    #expect(gauge.most == 1)
    await cluster.shutdown()
  }

  /// Two workers, whose items wait at the gate.
  private func offerTwice(on queue: ClusterQueue<Int>, width: Int) async throws -> (Log<Int>, Gauge, Gate) {
    let (started, gauge, gate) = (Log<Int>(), Gauge(), Gate())
    for _ in 1...2 {
      _ = try await queue.handle(width: width) { item in
        gauge.enter()
        started.append(item)
        await gate.pass()
        gauge.leave()
      }
    }
    return (started, gauge, gate)
  }

  @Test(arguments: EngineKind.allCases) func registrationThatHasEndedIsFreed(on engine: EngineKind)
    async throws
  {
    let cluster = try await engine.cluster()
    let queue = ClusterQueue<Int>(label: engine.label(), on: cluster)
    let log = Log<Int>()
    weak var registration: ClusterRegistration?
    do {
      let offer = try await queue.handle { log.append($0) }
      registration = offer
      try await queue.async(1)
      await log.until(1)
      offer.cancel()
      await offer.drained()
    }
    try await eventually { registration == nil }
    await cluster.shutdown()
  }

  @Test(arguments: EngineKind.allCases) func concurrentQueueRunsAsManyAsItsWorkersOffer(on engine: EngineKind)
    async throws
  {
    let cluster = try await engine.cluster()
    let queue = ClusterQueue<Int>(label: engine.label(), attributes: .concurrent, on: cluster)
    let (started, gauge, gate) = try await offerTwice(on: queue, width: 3)
    for item in 0..<20 { try await queue.async(item) }
    await started.until(6)
    try await eventually { try await queue.pendingCount() == 20 }
    gate.open()
    #expect(Set(await started.until(20)) == Set(0..<20))
    await cluster.shutdown()
    #expect(gauge.most == 6)
  }

  @Test(arguments: EngineKind.allCases) func widthOfTheQueueBoundsAllWorkers(on engine: EngineKind)
    async throws
  {
    let cluster = try await engine.cluster()
    var options = ClusterQueueOptions()
    options.width = 2
    let queue = ClusterQueue<Int>(
      label: engine.label(), attributes: .concurrent, options: options, on: cluster)
    let (log, gauge, gate) = try await offerTwice(on: queue, width: 5)
    for item in 0..<12 { try await queue.async(item) }
    await log.until(2)
    gate.open()
    await log.until(12)
    await cluster.shutdown()
    #expect(gauge.most == 2)
  }

  @Test(arguments: EngineKind.allCases) func failingItemRunsAgainAndHoldsItsSerialQueue(on engine: EngineKind)
    async throws
  {
    let cluster = try await engine.cluster()
    var options = ClusterQueueOptions()
    options.retryDelay = .milliseconds(50)
    let queue = ClusterQueue<Int>(label: engine.label(), options: options, on: cluster)
    let log = Log<(item: Int, at: ContinuousClock.Instant)>()
    _ = try await queue.handle { item in
      log.append((item, .now))
      if item == 1, log.all.count(where: { $0.item == 1 }) < 4 { throw Failed("not yet") }
    }
    for item in 0..<3 { try await queue.async(item) }
    let runs = await log.until(6)
    #expect(runs.map(\.item) == [0, 1, 1, 1, 1, 2])
    // Each delay is at least twice the one before.
    for (failures, delay) in [(1, 50), (2, 100), (3, 200)] {
      #expect(runs[failures + 1].at - runs[failures].at >= .milliseconds(delay))
    }
    await cluster.shutdown()
  }

  @Test(arguments: EngineKind.allCases) func itemThatFailsTooOftenIsPutAsideAndPutBack(on engine: EngineKind)
    async throws
  {
    let cluster = try await engine.cluster()
    var options = ClusterQueueOptions()
    options.attempts = 3
    options.retryDelay = .milliseconds(1)
    let queue = ClusterQueue<String>(label: engine.label(), options: options, on: cluster)
    let (log, mended) = (Log<String>(), Log<Bool>())
    _ = try await queue.handle { item in
      log.append(item)
      if item != "good", mended.all.isEmpty { throw Failed("no eyes in \(item)") }
    }
    for item in ["poison", "good", "other"] { try await queue.async(item) }
    try await eventually { try await queue.failedItems().count == 2 }
    #expect(log.all == ["poison", "poison", "poison", "good", "other", "other", "other"])
    let failures = try await queue.failedItems()
    #expect(failures.map(\.item) == ["poison", "other"])
    #expect(failures.map(\.attempts) == [3, 3])
    #expect(failures.map(\.reason) == ["no eyes in poison", "no eyes in other"])
    try await eventually { try await queue.pendingCount() == 0 }

    mended.append(true)
    try await queue.putBack(failures[0].number)
    #expect(await log.until(8).last == "poison")
    try await queue.discard(failures[1].number)
    #expect(try await queue.failedItems().isEmpty)
    for number in [failures[0].number, failures[1].number] {
      let missing = ClusterError.noSuchFailure(queue: queue.label, number: number)
      await #expect(throws: missing) { try await queue.putBack(number) }
      await #expect(throws: missing) { try await queue.discard(number) }
    }
    await cluster.shutdown()
  }

  @Test(arguments: EngineKind.allCases) func itemOfAnotherProgramIsPutAsideAtOnce(on engine: EngineKind)
    async throws
  {
    let cluster = try await engine.cluster()
    let label = engine.label()
    let (old, new) = (
      ClusterQueue<String>(label: label, on: cluster), ClusterQueue<Photo>(label: label, on: cluster)
    )
    let photo = Photo(name: "new", sizes: [1])
    try await old.async("an older program's item")
    try await new.async(photo)
    let log = Log<Photo>()
    _ = try await new.handle { log.append($0) }
    #expect(await log.until(1) == [photo])
    let failures = try await new.failedItems()
    try #require(failures.count == 1)
    #expect(failures[0].item == nil)
    #expect(String(decoding: failures[0].bytes, as: UTF8.self) == "\"an older program's item\"")
    #expect(failures[0].reason.hasPrefix("the item is no Photo: "))
    #expect(failures[0].attempts == 1)
    // The older program can still read it.
    #expect(try await old.failedItems().first?.item == "an older program's item")
    await cluster.shutdown()
  }

  @Test(arguments: EngineKind.allCases) func idsMakeSubmissionsCountOnce(on engine: EngineKind) async throws {
    let cluster = try await engine.cluster()
    let queue = ClusterQueue<Int>(label: engine.label(), on: cluster)
    #expect(try await queue.async(1, id: "a") == .stored)
    #expect(try await queue.async(2, id: "a") == .duplicate)
    #expect(try await queue.async(3, id: "b") == .stored)
    let log = Log<Int>()
    _ = try await queue.handle { log.append($0) }
    await log.until(2)
    // Also when the first one has long run.
    #expect(try await queue.async(4, id: "a") == .duplicate)
    #expect(try await queue.async(5) == .stored)
    #expect(await log.until(3) == [1, 3, 5])
    await cluster.shutdown()
  }

  @Test(arguments: EngineKind.allCases) func idsAreForgotten(on engine: EngineKind) async throws {
    let cluster = try await engine.cluster()
    var options = ClusterQueueOptions()
    options.idsAreKept = .seconds(1)
    let queue = ClusterQueue<Int>(label: engine.label(), options: options, on: cluster)
    let log = Log<Int>()
    _ = try await queue.handle { log.append($0) }
    #expect(try await queue.async(1, id: "a") == .stored)
    try await eventually { try await queue.async(2, id: "a") == .stored }
    // On a slow machine the item of an earlier try, too.
    #expect(Set(await log.until(2).dropFirst()) == [2])
    #expect(log.all.first == 1)
    await cluster.shutdown()
  }

  @Test(arguments: EngineKind.allCases) func oneOfManySubmissionsOfAnIdCounts(on engine: EngineKind)
    async throws
  {
    let cluster = try await engine.cluster()
    let queue = ClusterQueue<Int>(label: engine.label(), attributes: .concurrent, on: cluster)
    let log = Log<Int>()
    _ = try await queue.handle(width: 3) { log.append($0) }
    let stored = try await withThrowingTaskGroup(of: ClusterSubmission.self) { group in
      for item in 0..<30 { group.addTask { try await queue.async(item, id: "\(item % 3)") } }
      return try await group.reduce(into: 0) { $0 += $1 == .stored ? 1 : 0 }
    }
    #expect(stored == 3)
    await log.until(3)
    try await eventually { try await queue.pendingCount() == 0 }
    #expect(Set(log.all.map { $0 % 3 }) == [0, 1, 2])
    #expect(log.all.count == 3)
    await cluster.shutdown()
  }

  @Test(arguments: EngineKind.allCases) func fullQueueRefusesAndTakesAgain(on engine: EngineKind) async throws
  {
    let cluster = try await engine.cluster()
    var options = ClusterQueueOptions()
    options.limit = 3
    let queue = ClusterQueue<Int>(label: engine.label(), options: options, on: cluster)
    for item in 1...3 { try await queue.async(item) }
    let full = ClusterError.full(queue: queue.label, limit: 3)
    await #expect(throws: full) { try await queue.async(4) }
    #expect(full.description == "cluster queue \"\(queue.label)\" is full: it has 3 items")
    let log = Log<Int>()
    _ = try await queue.handle { log.append($0) }
    await log.until(3)
    // The last item may count for another moment.
    try await eventually {
      do {
        return try await queue.async(5) == .stored
      } catch let error as ClusterError where error == full {
        return false
      }
    }
    #expect(await log.until(4) == [1, 2, 3, 5])
    await cluster.shutdown()
  }

  @Test(arguments: EngineKind.allCases) func itemThatIsTooLargeIsRefused(on engine: EngineKind) async throws {
    let cluster = try await engine.cluster()
    let queue = ClusterQueue<String>(label: engine.label(), on: cluster)
    let item = String(repeating: "x", count: 10_000_000)
    await #expect(throws: ClusterError.tooLarge(queue: queue.label, bytes: 10_000_002, limit: 1_040_384)) {
      try await queue.async(item)
    }
    #expect(try await queue.pendingCount() == 0)
    await cluster.shutdown()
  }

  @Test(arguments: EngineKind.allCases) func idThatIsTooLongIsRefused(on engine: EngineKind) async throws {
    let cluster = try await engine.cluster()
    let queue = ClusterQueue<Int>(label: engine.label(), on: cluster)
    #expect(try await queue.async(1, id: String(repeating: "é", count: 128)) == .stored)
    await #expect(throws: ClusterError.idTooLong(queue: queue.label, bytes: 257, limit: 256)) {
      try await queue.async(2, id: String(repeating: "x", count: 257))
    }
    try await eventually { try await queue.pendingCount() == 1 }
    await cluster.shutdown()
  }

  @Test(arguments: EngineKind.allCases) func failedItemsComeInPages(on engine: EngineKind) async throws {
    let cluster = try await engine.cluster()
    var options = ClusterQueueOptions()
    options.attempts = 1
    let queue = ClusterQueue<Int>(label: engine.label(), options: options, on: cluster)
    // The longest reason: no letter of it fits the servers' headers as it is.
    _ = try await queue.handle { item in throw Failed("\(item)" + String(repeating: "\u{301}", count: 5_000))
    }
    for item in 0..<5 { try await queue.async(item, id: "\(item)" + String(repeating: "é", count: 127)) }
    try await eventually { try await queue.failedItems().count == 5 }
    let first = try await queue.failedItems(atMost: 2)
    #expect(first.map(\.item) == [0, 1])
    #expect(Array(first[0].reason.unicodeScalars.prefix(3)) == ["0", "\u{301}", "\u{301}"])
    let rest = try await queue.failedItems(after: first[1].number, atMost: 9)
    #expect(rest.map(\.item) == [2, 3, 4])
    #expect(try await queue.failedItems(after: rest[2].number).isEmpty)
    #expect(try await queue.failedItems(atMost: 0).isEmpty)
    await cluster.shutdown()
  }

  /// No worker loses an item because it is cancelled: each runs in its first attempt.
  @Test(arguments: EngineKind.allCases) func cancelledWorkersCostNoAttempts(on engine: EngineKind)
    async throws
  {
    let cluster = try await engine.cluster()
    var options = ClusterQueueOptions()
    options.attempts = 1
    let queue = ClusterQueue<Int>(
      label: engine.label(), attributes: .concurrent, options: options, on: cluster)
    let log = Log<Int>()
    let count = 200
    async let submissions: Void = {
      for item in 0..<count { try await queue.async(item) }
    }()
    for round in 1...5 {
      let registration = try await queue.handle(width: 5) { log.append($0) }
      await log.until(round * count / 10)
      registration.cancel()
      await registration.drained()
      // Nothing runs after it.
      let runs = log.all.count
      try await queue.async(-1)
      #expect(log.all.count == runs)
    }
    try await submissions
    let registration = try await queue.handle(width: 5) { log.append($0) }
    #expect(Set(await log.until(count + 5)) == Set(-1..<count))
    #expect(try await queue.failedItems().isEmpty)
    registration.cancel()
    await cluster.shutdown()
  }

  @Test(arguments: EngineKind.allCases) func itemThatCannotBeEncodedIsRefused(on engine: EngineKind)
    async throws
  {
    let cluster = try await engine.cluster()
    let queue = ClusterQueue<Double>(label: engine.label(), on: cluster)
    let error = await #expect(throws: ClusterError.self) { try await queue.async(.infinity) }
    #expect(
      error?.description.hasPrefix("an item for cluster queue \"\(queue.label)\" cannot be encoded: ") == true
    )
    await cluster.shutdown()
  }

  @Test(arguments: EngineKind.allCases) func sameLabelInAnotherFormIsAMismatch(on engine: EngineKind)
    async throws
  {
    let cluster = try await engine.cluster()
    let label = engine.label()
    try await ClusterQueue<Int>(label: label, on: cluster).async(1)
    let other = ClusterQueue<Int>(label: label, attributes: .concurrent, on: cluster)
    let error = await #expect(throws: ClusterError.self) { try await other.async(2) }
    #expect(error?.description.hasPrefix("cluster queue \"\(label)\" exists in another form: ") == true)
    await cluster.shutdown()
  }

  @Test(arguments: EngineKind.allCases) func cancelledWorkerFinishesWhatItHasAndLeavesTheRest(
    on engine: EngineKind
  )
    async throws
  {
    let cluster = try await engine.cluster()
    let queue = ClusterQueue<Int>(label: engine.label(), on: cluster)
    let (first, second, gate) = (Log<Int>(), Log<Int>(), Gate())
    let registration = try await queue.handle { item in
      first.append(item)
      await gate.pass()
    }
    for item in 0..<4 { try await queue.async(item) }
    await first.until(1)
    registration.cancel()
    _ = try await queue.handle { second.append($0) }
    // The second worker gets nothing while the first one runs.
    try await eventually { try await queue.pendingCount() == 4 }
    gate.open()
    await registration.drained()
    #expect(await second.until(3) == [1, 2, 3])
    #expect(first.all == [0])
    await cluster.shutdown()
  }

  @Test(arguments: EngineKind.allCases) func shutdownWaitsForItemsAndEndsTheCluster(on engine: EngineKind)
    async throws
  {
    let cluster = try await engine.cluster()
    let queue = ClusterQueue<Int>(label: engine.label(), attributes: .concurrent, on: cluster)
    let (started, ended, gate) = (Log<Int>(), Log<Int>(), Gate())
    _ = try await queue.handle(width: 2) { item in
      started.append(item)
      await gate.pass()
      ended.append(item)
    }
    for item in 0..<2 { try await queue.async(item) }
    await started.until(2)
    async let shutdown: Void = cluster.shutdown()
    gate.open()
    await shutdown
    #expect(Set(ended.all) == [0, 1])
    await #expect(throws: ClusterError.closed) { try await queue.async(2) }
    await #expect(throws: ClusterError.closed) { try await queue.pendingCount() }
    await #expect(throws: ClusterError.closed) { try await queue.handle { _ in } }
  }

  @Test(arguments: EngineKind.allCases) func handlersRunOnAQueueOfTheirLabelAndMayBlock(on engine: EngineKind)
    async throws
  {
    let cluster = try await engine.cluster()
    let queue = ClusterQueue<Int>(label: engine.label(), attributes: .concurrent, on: cluster)
    let (log, gate) = (Log<String>(), DispatchSemaphore(value: 0))
    let width = 40
    _ = try await queue.handle(qos: .utility, width: width) { _ in
      log.append(DispatchQueue.currentLabel)
      wait(for: gate)
    }
    for item in 0..<width { try await queue.async(item) }
    // All of them block at the same time: the pool replaces their threads.
    #expect(await log.until(width) == Array(repeating: queue.label, count: width))
    for _ in 0..<width { gate.signal() }
    await cluster.shutdown()
  }
}

/// Blocks the thread, which tasks may do on Concourse.
private func wait(for semaphore: DispatchSemaphore) { semaphore.wait() }
