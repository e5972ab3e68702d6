import Concourse
import ConcourseCluster
import Synchronization
import Testing

/// Barriers.
@Suite(.timeLimit(.minutes(10))) struct BarrierTests {
  /// A barrier ends its round.
  struct Step: Codable, Hashable, Sendable {
    var round: Int
    var isBarrier: Bool
  }

  /// Counts what runs, and what runs at the wrong time.
  final class Rounds: Sendable {
    let log = Log<Step>()
    private let size: Int
    private let state = Mutex((running: 0, items: [Int: Int](), barriers: 0, faults: [String]()))

    init(size: Int) { self.size = size }

    var faults: [String] { state.withLock { $0.faults } }

    func run(_ step: Step) async {
      state.withLock { state in
        if step.isBarrier {
          if state.running != 0 { state.faults.append("\(step) beside others") }
          if state.items[step.round] != size { state.faults.append("\(step) too early") }
        }
        // Those of later rounds start after the barrier.
        if state.barriers != step.round { state.faults.append("\(step) after \(state.barriers) barriers") }
        state.running += 1
      }
      await Task.yield()
      state.withLock { state in
        state.running -= 1
        if step.isBarrier { state.barriers += 1 } else { state.items[step.round, default: 0] += 1 }
      }
      log.append(step)
    }
  }

  private func submit(_ rounds: Int, _ size: Int, to queue: ClusterQueue<Step>) async throws {
    for round in 0..<rounds {
      for number in 0..<size {
        let step = Step(round: round, isBarrier: false)
        let key = number % 3 == 0 ? "\(number % 2)" : nil
        try await queue.async(step, key: key, id: number % 2 == 0 ? "\(round)-\(number)" : nil)
      }
      try await queue.async(Step(round: round, isBarrier: true), flags: .barrier)
    }
  }

  @Test(arguments: EngineKind.allCases) func barrierRunsAlone(on engine: EngineKind) async throws {
    let cluster = try await engine.cluster()
    let other = engine == .embedded ? cluster : try await engine.cluster()
    let label = engine.label()
    let (count, size) = (8, 12)
    let rounds = Rounds(size: size)
    let queue = ClusterQueue<Step>(label: label, attributes: [.concurrent, .barriers], on: cluster)
    // All before there is a worker, so that items come to the workers together.
    try await submit(count, size, to: queue)
    for (cluster, width) in [(cluster, 4), (other, 3), (other, 1)] {
      _ = try await ClusterQueue<Step>(label: label, attributes: [.concurrent, .barriers], on: cluster)
        .handle(width: width) { await rounds.run($0) }
    }
    await rounds.log.until(count * (size + 1))
    #expect(rounds.faults == [])
    try await eventually { try await queue.pendingCount() == 0 }
    await other.shutdown()
    await cluster.shutdown()
    #expect(rounds.log.all.count == count * (size + 1))
  }

  /// A barrier waits for an item that fails, and while it fails the items behind it wait.
  @Test(arguments: EngineKind.allCases) func failuresHoldBarriersAndWhatIsBehind(on engine: EngineKind)
    async throws
  {
    let cluster = try await engine.cluster()
    var options = ClusterQueueOptions()
    options.attempts = 2
    options.retryDelay = .milliseconds(20)
    let queue = ClusterQueue<Int>(
      label: engine.label(), attributes: [.concurrent, .barriers], options: options, on: cluster)
    let log = Log<Int>()
    try await queue.async(0)
    try await queue.async(1, flags: .barrier)
    try await queue.async(2)
    try await queue.async(3, flags: .barrier)
    // Also with a worker that runs one item at a time.
    let registration = try await queue.handle { item in
      log.append(item)
      if item < 2 { throw Failed("no eyes") }
    }
    #expect(await log.until(6) == [0, 0, 1, 1, 2, 3])
    try await eventually { try await queue.pendingCount() == 0 }
    registration.cancel()
    await registration.drained()

    // What was a barrier is one when it is put back.
    let (started, gate) = (Log<Int>(), Gate())
    _ = try await queue.handle(width: 3) { item in
      started.append(item)
      if item == 4 { await gate.pass() }
    }
    try await queue.async(4)
    await started.until(1)
    let failures = try await queue.failedItems()
    #expect(failures.map(\.item) == [0, 1])
    try await queue.putBack(try #require(failures.last).number)
    try await queue.async(5)
    try await eventually { try await queue.pendingCount() == 3 }
    gate.open()
    #expect(await started.until(3) == [4, 1, 5])
    await cluster.shutdown()
  }

  @Test(arguments: EngineKind.allCases) func cancelledBarrierHoldsNothing(on engine: EngineKind) async throws
  {
    let cluster = try await engine.cluster()
    let queue = ClusterQueue<Int>(
      label: engine.label(), attributes: [.concurrent, .barriers], on: cluster)
    let (log, gate) = (Log<Int>(), Gate())
    _ = try await queue.handle(width: 3) { item in
      log.append(item)
      if item == 0 { await gate.pass() }
    }
    try await queue.async(0)
    await log.until(1)
    try await queue.async(1, flags: .barrier, id: "1")
    for item in 2...4 { try await queue.async(item, id: "\(item)") }
    try await eventually { try await queue.pendingCount() == 5 }
    #expect(log.all == [0])
    // On servers they have reached the worker, or will.
    for id in ["3", "1"] { #expect(try await queue.cancel(id: id) == .cancelled) }
    #expect(Set(await log.until(3)) == [0, 2, 4])
    try await queue.asyncAfter(deadline: .now() + .milliseconds(1), 5, flags: .barrier, id: "5")
    gate.open()
    #expect(await log.until(4).last == 5)
    try await eventually { try await queue.pendingCount() == 0 }
    await cluster.shutdown()
  }

  @Test(arguments: EngineKind.allCases) func itemsWaitForABarrierThatRuns(on engine: EngineKind) async throws
  {
    let cluster = try await engine.cluster()
    let queue = ClusterQueue<Int>(
      label: engine.label(), attributes: [.concurrent, .barriers], on: cluster)
    let (log, gate) = (Log<Int>(), Gate())
    _ = try await queue.handle(width: 9) { item in
      log.append(item)
      if item == 0 {
        await gate.pass()
        log.append(-1)
      }
    }
    try await queue.async(0, flags: .barrier)
    await log.until(1)
    for item in 1...20 { try await queue.async(item, key: item % 2 == 0 ? "a" : nil) }
    gate.open()
    let items = await log.until(22)
    #expect(items.prefix(2) == [0, -1])
    #expect(Set(items) == Set(-1...20))
    await cluster.shutdown()
  }

  @Test(arguments: EngineKind.allCases) func serialQueueTakesBarriers(on engine: EngineKind) async throws {
    let cluster = try await engine.cluster()
    let queue = ClusterQueue<Int>(label: engine.label(), on: cluster)
    let log = Log<Int>()
    for item in 0..<6 { try await queue.async(item, flags: item % 2 == 0 ? .barrier : []) }
    _ = try await queue.handle { log.append($0) }
    #expect(await log.until(6) == Array(0..<6))
    await cluster.shutdown()
  }

  @Test func barrierOfAnotherQueueIsAMisuse() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let queue = ClusterQueue<Int>(label: "plain", attributes: .concurrent, on: .embedded())
      try await queue.async(1, flags: .barrier)
    }
    let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    #expect(
      text.contains("a barrier needs a cluster queue with the attribute \"barriers\" (queue \"plain\")"))
  }

  /// Each server is killed once and comes back.
  @Test func killedServersLetNothingPass() async throws {
    let servers = try await TestServers.start(3)
    defer { servers.stop() }
    let producer = try await Cluster.connect(servers: servers.addresses, timeout: .seconds(300))
    let worker = try await Cluster.connect(servers: servers.addresses, timeout: .seconds(300))
    var options = ClusterQueueOptions()
    options.patience = .seconds(5)
    let attributes: ClusterQueueAttributes = [.concurrent, .barriers]
    let queue = ClusterQueue<Step>(label: "barriers", attributes: attributes, options: options, on: producer)
    let (count, size) = (20, 12)
    let rounds = Rounds(size: size)
    _ = try await ClusterQueue<Step>(label: "barriers", attributes: attributes, options: options, on: worker)
      .handle(width: 6) { await rounds.run($0) }
    async let submissions: Void = submit(count, size, to: queue)
    let all = count * (size + 1)
    for index in 0..<3 {
      await rounds.log.until((3 * index + 1) * all / 10)
      servers.kill(index)
      await rounds.log.until((3 * index + 2) * all / 10)
      try await servers.restart(index)
    }
    try await submissions
    await rounds.log.until(all)
    try await eventually { try await queue.pendingCount() == 0 }
    #expect(rounds.faults == [])
    #expect(rounds.log.all.count == all)
    #expect(try await queue.failedItems().isEmpty)
    await worker.shutdown()
    await producer.shutdown()
  }
}
