import Concourse
import Synchronization
import Testing

@testable import ConcourseCluster

/// Order for each key.
@Suite(.timeLimit(.minutes(10))) struct KeyTests {
  struct Step: Codable, Hashable, Sendable {
    var key: Int
    var number: Int
  }

  /// What ran, and whether two items of one key ran at the same time.
  final class Course: Sendable {
    let log = Log<Step>()
    private let running = Mutex<Set<Int>>([])
    private let collisions = Atomic(0)
    // ORDERING: relaxed; the log orders what the test reads.
    var collisionCount: Int { collisions.load(ordering: .relaxed) }

    func run(_ step: Step, _ body: () async -> Void = { await Task.yield() }) async {
      let isAlone = running.withLock { $0.insert(step.key).inserted }
      // ORDERING: as above.
      if !isAlone { collisions.add(1, ordering: .relaxed) }
      await body()
      if isAlone { running.withLock { _ = $0.remove(step.key) } }
      log.append(step)
    }

    func numbers(of key: Int) -> [Int] { log.all.filter { $0.key == key }.map(\.number) }
  }

  @Test(arguments: EngineKind.allCases) func itemsOfAKeyRunInOrder(on engine: EngineKind) async throws {
    let cluster = try await engine.cluster()
    let other = engine == .embedded ? cluster : try await engine.cluster()
    let label = engine.label()
    let queue = ClusterQueue<Step>(label: label, attributes: .concurrent, on: cluster)
    let course = Course()
    let (keys, count) = (7, 20)
    func submit(_ numbers: Range<Int>) async throws {
      // Runs of one key, so that its items come to the workers together. The others are a key of their own here.
      for key in 0..<keys {
        for number in numbers { try await queue.async(Step(key: key, number: number), key: "key \(key)") }
      }
      for number in numbers { try await queue.async(Step(key: -1 - number, number: number)) }
    }
    try await submit(0..<10)
    for (cluster, width) in [(cluster, 4), (other, 4), (other, 1)] {
      _ = try await ClusterQueue<Step>(label: label, attributes: .concurrent, on: cluster)
        .handle(width: width) { step in
          await course.run(step) { for _ in 0...step.number % 4 { await Task.yield() } }
        }
    }
    try await submit(10..<20)
    await course.log.until((keys + 1) * count)
    for key in 0..<keys { #expect(course.numbers(of: key) == Array(0..<count)) }
    #expect(course.collisionCount == 0)
    try await eventually { try await queue.pendingCount() == 0 }
    await other.shutdown()
    await cluster.shutdown()
    #expect(course.log.all.count == (keys + 1) * count)
  }

  /// Items that wait for others of their key take no place of the worker.
  @Test(arguments: EngineKind.allCases) func keysRunBesideEachOther(on engine: EngineKind) async throws {
    let cluster = try await engine.cluster()
    let queue = ClusterQueue<Step>(label: engine.label(), attributes: .concurrent, on: cluster)
    let (course, started, gate) = (Course(), Log<Step>(), Gate())
    for number in 0..<30 { try await queue.async(Step(key: 0, number: number), key: "long") }
    for key in 1...2 { try await queue.async(Step(key: key, number: 0), key: "\(key)") }
    _ = try await queue.handle(width: 3) { step in
      started.append(step)
      await course.run(step) { await gate.pass() }
    }
    #expect(Set(await started.until(3)) == Set((0...2).map { Step(key: $0, number: 0) }))
    gate.open()
    await course.log.until(32)
    #expect(course.numbers(of: 0) == Array(0..<30))
    #expect(course.collisionCount == 0)
    await cluster.shutdown()
  }

  /// Its id may be another item's by the time at which it starts.
  @Test(arguments: EngineKind.allCases) func itemWaitsLongerThanItsIdIsKept(on engine: EngineKind)
    async throws
  {
    let cluster = try await engine.cluster()
    var options = ClusterQueueOptions()
    options.idsAreKept = .seconds(1)
    let queue = ClusterQueue<Int>(
      label: engine.label(), attributes: .concurrent, options: options, on: cluster)
    let (log, gate) = (Log<Int>(), Gate())
    _ = try await queue.handle(width: 2) { number in
      if number == 0 { await gate.pass() }
      log.append(number)
    }
    try await queue.async(0, key: "a")
    #expect(try await queue.async(1, key: "a", id: "x") == .stored)
    try await eventually { try await queue.async(2, key: "a", id: "x") == .stored }
    gate.open()
    // On a slow machine an earlier try may have been stored, too.
    #expect(await log.until(3).prefix(3) == [0, 1, 2])
    await cluster.shutdown()
  }

  /// Also with a worker that runs one item at a time.
  @Test(arguments: EngineKind.allCases) func failingItemHoldsItsKeyOnly(on engine: EngineKind) async throws {
    let cluster = try await engine.cluster()
    var options = ClusterQueueOptions()
    options.attempts = 3
    options.retryDelay = .seconds(1)
    let queue = ClusterQueue<Step>(
      label: engine.label(), attributes: .concurrent, options: options, on: cluster)
    let (log, mended) = (Log<Step>(), Gate())
    let isMended = Mutex(false)
    for number in 0..<4 { try await queue.async(Step(key: 0, number: number), key: "a") }
    try await queue.async(Step(key: 1, number: 0), key: "b")
    _ = try await queue.handle { step in
      log.append(step)
      if step.key == 0, step.number == 1, !isMended.withLock({ $0 }) { throw Failed("no eyes") }
      if step.number == 9 { await mended.pass() }
    }
    await log.until(7)
    func numbers() -> [Int] { log.all.filter { $0.key == 0 }.map(\.number) }
    #expect(numbers() == [0, 1, 1, 1, 2, 3])
    // The other key did not wait for the second delay.
    #expect(log.all.firstIndex(of: Step(key: 1, number: 0))! <= 3)
    try await eventually { try await queue.pendingCount() == 0 }
    let failures = try await queue.failedItems()
    #expect(failures.map(\.attempts) == [3])

    // What is put back has its key: it waits for an item that runs.
    isMended.withLock { $0 = true }
    try await queue.async(Step(key: 0, number: 9), key: "a")
    await log.until(8)
    try await queue.putBack(try #require(failures.first).number)
    _ = try await queue.handle(width: 2) { log.append($0) }
    try await queue.async(Step(key: 1, number: 1), key: "b")
    #expect(await log.until(9).last == Step(key: 1, number: 1))
    mended.open()
    #expect(await log.until(10).last == Step(key: 0, number: 1))
    await cluster.shutdown()
  }

  /// Also if it has reached a worker, of another connection.
  @Test(arguments: EngineKind.allCases) func itemInLineCanBeCancelled(on engine: EngineKind) async throws {
    let cluster = try await engine.cluster()
    let worker = engine == .embedded ? cluster : try await engine.cluster()
    let label = engine.label()
    let queue = ClusterQueue<Int>(label: label, attributes: .concurrent, on: cluster)
    let group = ClusterGroup(label: "group", of: queue)
    let (log, gate) = (Log<Int>(), Gate())
    for item in 0..<4 { try await queue.async(item, key: "a", id: "\(item)", group: group) }
    let registration = try await ClusterQueue<Int>(label: label, attributes: .concurrent, on: worker)
      .handle(width: 2) { item in
        log.append(item)
        if item == 0 { await gate.pass() }
      }
    await log.until(1)
    if engine == .servers { try await eventually { registration.heldCount == 4 } }
    #expect(try await queue.cancel(id: "0") == .started)
    #expect(try await queue.cancel(id: "1") == .cancelled)
    #expect(try await queue.cancel(id: "3") == .cancelled)
    // Although one runs and another one is before them.
    try await eventually { try await queue.pendingCount() == 2 }
    if engine == .servers { try await eventually { registration.heldCount == 2 } }
    #expect(try await queue.cancel(id: "3") == .notPending)
    gate.open()
    try await group.finished()
    #expect(log.all == [0, 2])
    try await queue.async(4, key: "a")
    #expect(await log.until(3) == [0, 2, 4])
    await worker.shutdown()
    await cluster.shutdown()
  }

  @Test(arguments: EngineKind.allCases) func keysOfOtherSubmissions(on engine: EngineKind) async throws {
    let cluster = try await engine.cluster()
    let queue = ClusterQueue<Int>(label: engine.label(), attributes: .concurrent, on: cluster)
    let (log, gate) = (Log<Int>(), Gate())
    // The longest key; no letter of it fits a subject as it is.
    let key = String(repeating: "é", count: 128)
    try await queue.async(0, key: key)
    try await queue.asyncAfter(deadline: .now() + .milliseconds(1), 1, key: key, id: "1")
    _ = try await queue.handle(width: 4) { item -> Int in
      log.append(item)
      if item == 0 { await gate.pass() }
      return item + 1
    }
    await log.until(1)
    let caller = Task { try await queue.run(2, key: key, returning: Int.self) }
    try await eventually { try await queue.pendingCount() == 3 }
    try await queue.async(3, key: "other")
    #expect(await log.until(2) == [0, 3])
    gate.open()
    #expect(try await caller.value == 3)
    #expect(Set(await log.until(4)) == [0, 1, 2, 3])
    await #expect(throws: ClusterError.keyTooLong(queue: queue.label, bytes: 257, limit: 256)) {
      try await queue.async(4, key: String(repeating: "x", count: 257))
    }
    await cluster.shutdown()
  }

  /// A worker that is cancelled gives back what waits in it, and that costs no attempt.
  @Test(arguments: EngineKind.allCases) func cancelledWorkerLeavesItsLine(on engine: EngineKind) async throws
  {
    let cluster = try await engine.cluster()
    var options = ClusterQueueOptions()
    options.attempts = 2
    let queue = ClusterQueue<Int>(
      label: engine.label(), attributes: .concurrent, options: options, on: cluster)
    let log = Log<Int>()
    let gate = Gate()
    _ = try await queue.handle { item in
      log.append(item)
      await gate.pass()
    }
    try await queue.async(0, key: "a")
    await log.until(1)
    for item in 1...3 { try await queue.async(item, key: "a") }
    for _ in 1...3 {
      let registration = try await queue.handle(width: 2) { log.append($0) }
      // It gets this one, and the others of the key on the way.
      try await queue.async(-1)
      try await eventually { try await queue.pendingCount() == 4 }
      registration.cancel()
      await registration.drained()
    }
    gate.open()
    #expect(await log.until(7).filter { $0 >= 0 } == [0, 1, 2, 3])
    #expect(try await queue.failedItems().isEmpty)
    await cluster.shutdown()
  }

  @Test(arguments: EngineKind.allCases) func serialQueueTakesKeys(on engine: EngineKind) async throws {
    let cluster = try await engine.cluster()
    let queue = ClusterQueue<Int>(label: engine.label(), on: cluster)
    let log = Log<Int>()
    for item in 0..<6 { try await queue.async(item, key: "\(item % 2)") }
    _ = try await queue.handle { log.append($0) }
    #expect(await log.until(6) == Array(0..<6))
    await cluster.shutdown()
  }

  /// Each server is killed once and comes back.
  @Test func killedServersKeepTheOrder() async throws {
    let servers = try await TestServers.start(3)
    defer { servers.stop() }
    let producer = try await Cluster.connect(servers: servers.addresses, timeout: .seconds(300))
    let worker = try await Cluster.connect(servers: servers.addresses, timeout: .seconds(300))
    var options = ClusterQueueOptions()
    options.patience = .seconds(5)
    let course = Course()
    _ = try await ClusterQueue<Step>(label: "keys", attributes: .concurrent, options: options, on: worker)
      .handle(width: 6) { await course.run($0) }
    let queue = ClusterQueue<Step>(label: "keys", attributes: .concurrent, options: options, on: producer)
    let (keys, count) = (5, 60)
    async let submissions: Void = {
      for number in 0..<count {
        for key in 0..<keys {
          let id = number % 2 == 0 ? "\(key)-\(number)" : nil
          try await queue.async(Step(key: key, number: number), key: "\(key)", id: id)
        }
      }
    }()
    for index in 0..<3 {
      await course.log.until((3 * index + 1) * keys * count / 10)
      servers.kill(index)
      await course.log.until((3 * index + 2) * keys * count / 10)
      try await servers.restart(index)
    }
    try await submissions
    await course.log.until(keys * count)
    try await eventually { try await queue.pendingCount() == 0 }
    for key in 0..<keys { #expect(course.numbers(of: key) == Array(0..<count)) }
    #expect(course.collisionCount == 0)
    #expect(try await queue.failedItems().isEmpty)
    await worker.shutdown()
    await producer.shutdown()
  }
}
