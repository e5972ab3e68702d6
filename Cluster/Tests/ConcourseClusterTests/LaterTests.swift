import Concourse
import Testing

@testable import ConcourseCluster

/// `asyncAfter`.
@Suite(.timeLimit(.minutes(10))) struct LaterTests {
  /// By the clock that deadlines are kept in.
  private struct Run: Sendable {
    let item: Int
    let at = WallTime.now
  }

  @Test(arguments: EngineKind.allCases) func itemsJoinTheQueueAtTheirDeadlines(on engine: EngineKind)
    async throws
  {
    let cluster = try await engine.cluster()
    let queue = ClusterQueue<Int>(label: engine.label(), on: cluster)
    let log = Log<Run>()
    // Making the queue may take longer than the delays; then nothing could be early.
    _ = try await queue.handle { log.append(Run(item: $0)) }
    let start = WallTime.now
    try await queue.asyncAfter(deadline: .now() + .seconds(3), 3)
    try await queue.asyncAfter(wallDeadline: .now() + .milliseconds(1_500), 2)
    try await queue.asyncAfter(deadline: .now() - .seconds(1), 0)
    try await queue.async(1)
    let runs = await log.until(4)
    // On a slow machine, items may be due at the same time; these have no order.
    #expect(Set(runs.map(\.item)) == [0, 1, 2, 3])
    for run in runs where run.item >= 2 {
      #expect(run.at - start >= .milliseconds(run.item == 2 ? 1_500 : 3_000))
    }
    #expect(runs.filter { $0.item < 2 }.map(\.item) == [0, 1])
    try await eventually { try await queue.pendingCount() == 0 }
    await cluster.shutdown()
  }

  @Test(arguments: EngineKind.allCases) func firstWorkerAfterTheDeadlineGetsTheItem(on engine: EngineKind)
    async throws
  {
    let cluster = try await engine.cluster()
    let queue = ClusterQueue<Int>(label: engine.label(), on: cluster)
    let first = try await queue.handle { _ in }
    try await queue.asyncAfter(deadline: .now() + .seconds(15), 1)
    first.cancel()
    await first.drained()
    #expect(try await queue.pendingCount() == 1)
    let log = Log<Int>()
    let second = try await queue.handle { log.append($0) }
    #expect(await log.until(1) == [1])
    second.cancel()
    await second.drained()
    await cluster.shutdown()
  }

  @Test(arguments: EngineKind.allCases) func idsAndLimitsCountItemsThatWait(on engine: EngineKind)
    async throws
  {
    let cluster = try await engine.cluster()
    var options = ClusterQueueOptions()
    options.limit = 2
    let queue = ClusterQueue<Int>(label: engine.label(), options: options, on: cluster)
    let deadline = DispatchTime.now() + .seconds(1)
    #expect(try await queue.asyncAfter(deadline: deadline, 1, id: "a") == .stored)
    #expect(try await queue.asyncAfter(deadline: deadline, 2, id: "a") == .duplicate)
    #expect(try await queue.async(3, id: "a") == .duplicate)
    #expect(try await queue.asyncAfter(wallDeadline: .distantFuture, 4, id: "b") == .stored)
    let full = ClusterError.full(queue: queue.label, limit: 2)
    await #expect(throws: full) { try await queue.async(5) }
    await #expect(throws: full) { try await queue.asyncAfter(deadline: deadline, 5) }
    let log = Log<Int>()
    _ = try await queue.handle { log.append($0) }
    #expect(await log.until(1) == [1])
    // Also after the move.
    #expect(try await queue.async(6, id: "a") == .duplicate)
    try await eventually { try await queue.pendingCount() == 1 }
    #expect(log.all == [1])
    await cluster.shutdown()
  }

  /// All servers at once, before the deadlines: times and items are in their files.
  @Test func deadlinesOutliveAllServers() async throws {
    let servers = try await TestServers.start(3)
    defer { servers.stop() }
    let cluster = try await Cluster.connect(servers: servers.addresses, timeout: .seconds(300))
    let queue = ClusterQueue<Int>(label: "kept", attributes: .concurrent, on: cluster)
    let log = Log<Run>()
    // The servers have returned items with their delay when they are killed.
    _ = try await queue.handle(width: 10) { log.append(Run(item: $0)) }
    let start = WallTime.now
    for item in 0..<20 { try await queue.asyncAfter(wallDeadline: (start + .seconds(6)).asDeadline, item) }
    for index in 0..<3 { servers.kill(index) }
    for index in 0..<3 { try await servers.restart(index) }
    let runs = await log.until(20)
    #expect(runs.map(\.item).sorted() == Array(0..<20))
    #expect(runs.allSatisfy { $0.at - start >= .seconds(6) })
    try await eventually { try await queue.pendingCount() == 0 }
    #expect(log.all.count == 20)
    await cluster.shutdown()
  }

  /// Servers are killed while items become due: each item runs once, and none before its time.
  @Test func killedServersNeitherLoseNorDoubleItemsThatBecomeDue() async throws {
    let servers = try await TestServers.start(3)
    defer { servers.stop() }
    let clusters = [
      try await Cluster.connect(servers: servers.addresses, timeout: .seconds(300)),
      try await Cluster.connect(servers: servers.addresses, timeout: .seconds(300)),
    ]
    var options = ClusterQueueOptions()
    options.patience = .seconds(5)
    let queues = clusters.map {
      ClusterQueue<Int>(label: "due", attributes: .concurrent, options: options, on: $0)
    }
    let log = Log<Run>()
    // Items run on one connection, which knows what it has finished; both of them move items.
    _ = try await queues[0].handle(width: 10) { log.append(Run(item: $0)) }
    let mover = try NATSMover(
      for: #require(
        await NATSEngine.connect(
          servers: servers.addresses, credentials: .none, replicas: 3, timeout: .seconds(300)
        ).open(QueueSettings(label: "due", attributes: .concurrent, options: options)) as? NATSQueue))
    try mover.start()
    let start = WallTime.now
    let count = 300
    for item in 0..<count {
      // One after the other, each 50 ms after the last one.
      try await queues[1].asyncAfter(
        wallDeadline: (start + .milliseconds(3_000 + 50 * item)).asDeadline, item,
        id: item % 2 == 0 ? "\(item)" : nil)
    }
    for index in 0..<3 {
      await log.until((3 * index + 1) * count / 10)
      servers.kill(index)
      await log.until((3 * index + 2) * count / 10)
      try await servers.restart(index)
    }
    await log.until(count)
    try await eventually { try await queues[0].pendingCount() == 0 }
    #expect(log.all.map(\.item).sorted() == Array(0..<count))
    #expect(log.all.allSatisfy { $0.at - start >= .milliseconds(3_000 + 50 * $0.item) })
    mover.cancel {}
    for cluster in clusters { await cluster.shutdown() }
  }

  /// A process that ends between the move of an item and its acknowledgement leaves it to another one.
  @Test func itemThatIsMovedTwiceRunsOnce() async throws {
    let addresses = try await TestServers.shared.value.addresses
    let engine = try await NATSEngine.connect(
      servers: addresses, credentials: .none, replicas: 3, timeout: .seconds(300))
    let label = EngineKind.servers.label()
    let settings = QueueSettings(label: label, attributes: [], options: ClusterQueueOptions())
    let queue = try #require(try await engine.open(settings) as? NATSQueue)
    let mover = NATSMover(for: queue)
    func delivery(_ item: Int, token: String?) -> NATSDelivery {
      NATSDelivery(
        NATSMessage(
          subject: queue.names.place(waits: true), reply: "$JS.ACK.s.c.1.1.1.\(WallTime.now.nanoseconds).0",
          bytes: Array("\(item)".utf8), id: token == nil ? "once-\(item)" : "id-\(item)", token: token),
        of: mover)!
    }
    for (item, token) in [(1, nil), (2, "t/1")] {
      async let first: Void = queue.move(delivery(item, token: token))
      async let second: Void = queue.move(delivery(item, token: token))
      _ = try await (first, second)
      // Another try of the same submission is the same item.
      try await queue.move(delivery(item, token: token == nil ? nil : "t/2"))
    }
    let cluster = try await EngineKind.servers.cluster()
    let log = Log<Int>()
    let items = ClusterQueue<Int>(label: label, on: cluster)
    _ = try await items.handle { log.append($0) }
    try await eventually { try await items.pendingCount() == 0 }
    #expect(await log.until(2) == [1, 2])
    await cluster.shutdown()
    await engine.close()
  }
}
