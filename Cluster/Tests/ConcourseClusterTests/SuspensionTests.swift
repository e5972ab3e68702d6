import Concourse
import ConcourseCluster
import Testing

/// `suspend` and `resume`.
@Suite(.timeLimit(.minutes(10))) struct SuspensionTests {
  private struct Run: Sendable {
    let item: Int
    let at = ContinuousClock.now
  }

  /// Waits for an item of another queue, which starts in two seconds.
  private func whileOthersRun(on cluster: Cluster, _ label: String) async throws {
    let other = ClusterQueue<Int>(label: label + ".other", attributes: .concurrent, on: cluster)
    let log = Log<Int>()
    let registration = try await other.handle { log.append($0) }
    try await other.asyncAfter(deadline: .now() + .seconds(2), 1)
    await log.until(1)
    registration.cancel()
    await registration.drained()
  }

  @Test(arguments: EngineKind.allCases) func suspendedQueueStartsNothing(on engine: EngineKind) async throws {
    let cluster = try await engine.cluster()
    let other = engine == .embedded ? cluster : try await engine.cluster()
    let label = engine.label()
    let queue = ClusterQueue<Int>(label: label, attributes: .concurrent, on: cluster)
    let (log, gate) = (Log<Run>(), Gate())
    let handler: @Sendable (Int) async -> Void = { item in
      log.append(Run(item: item))
      if item == 0 { await gate.pass() }
    }
    _ = try await queue.handle(width: 2, handler)
    try await queue.async(0)
    await log.until(1)
    #expect(try await !queue.isSuspended())
    try await queue.suspend()
    try await queue.suspend()
    #expect(try await queue.isSuspended())
    // What says so is no failed item.
    #expect(try await queue.failedItems().isEmpty)
    for number in 1...3 as ClosedRange<UInt64> {
      let missing = ClusterError.noSuchFailure(queue: label, number: number)
      await #expect(throws: missing) { try await queue.discard(number) }
      await #expect(throws: missing) { try await queue.putBack(number) }
    }
    // A worker that comes now starts nothing, too; submissions are stored, and what is due joins them.
    let late = ClusterQueue<Int>(label: label, attributes: .concurrent, on: other)
    _ = try await late.handle(width: 2, handler)
    for item in 1...5 { try await queue.async(item) }
    try await queue.asyncAfter(deadline: .now() + .milliseconds(100), 6)
    try await whileOthersRun(on: cluster, label)
    try await eventually { try await queue.pendingCount() == 7 }
    // The item that runs is not held up.
    gate.open()
    try await eventually { try await queue.pendingCount() == 6 }
    let end = ContinuousClock.now
    try await late.resume()
    let runs = await log.until(7)
    #expect(runs.map(\.item).sorted() == Array(0...6))
    #expect(runs.dropFirst().allSatisfy { $0.at >= end })
    #expect(try await !queue.isSuspended())
    await other.shutdown()
    await cluster.shutdown()
  }

  @Test(arguments: EngineKind.allCases) func workersOfASuspendedQueueEnd(on engine: EngineKind) async throws {
    let cluster = try await engine.cluster()
    let queue = ClusterQueue<Int>(label: engine.label(), on: cluster)
    let log = Log<Int>()
    // Whether the item has reached the worker before the suspension or not: it runs once, after it.
    let first = try await queue.handle { log.append($0) }
    try await queue.suspend()
    try await queue.async(1)
    first.cancel()
    await first.drained()
    let second = try await queue.handle { log.append($0) }
    try await queue.resume()
    #expect(await log.until(1) == [1])
    second.cancel()
    await second.drained()
    try await eventually { try await queue.pendingCount() == 0 }
    #expect(log.all == [1])
    await cluster.shutdown()
  }

  /// All servers at once; and the process that has suspended the queue ends, too.
  @Test func suspensionOutlivesServersAndProcesses() async throws {
    let servers = try await TestServers.start(3)
    defer { servers.stop() }
    let first = try await Cluster.connect(servers: servers.addresses, timeout: .seconds(300))
    let worker = try await Cluster.connect(servers: servers.addresses, timeout: .seconds(300))
    let (queue, log) = (ClusterQueue<Int>(label: "suspended", on: worker), Log<Run>())
    _ = try await queue.handle { log.append(Run(item: $0)) }
    try await ClusterQueue<Int>(label: "suspended", on: first).suspend()
    // A worker that learned nothing before the servers were killed starts no item from then on.
    let bound = ContinuousClock.now + .seconds(10)
    await first.shutdown()
    for index in 0..<3 { servers.kill(index) }
    for index in 0..<3 { try await servers.restart(index) }
    try await Task.sleep(until: bound)
    for item in 0..<3 { try await queue.async(item) }
    try await whileOthersRun(on: worker, "suspended")
    #expect(try await queue.isSuspended())
    let end = ContinuousClock.now
    try await queue.resume()
    let runs = await log.until(3)
    #expect(runs.map(\.item) == [0, 1, 2])
    #expect(runs.allSatisfy { $0.at >= end })
    await worker.shutdown()
  }
}
