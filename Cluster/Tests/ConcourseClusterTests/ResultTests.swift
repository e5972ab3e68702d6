import Glibc
import Testing

@testable import ConcourseCluster

/// `run`, and handlers with results.
@Suite(.timeLimit(.minutes(10))) struct ResultTests {
  struct Eyes: Codable, Hashable, Sendable { var places: [Int] }

  @Test(arguments: EngineKind.allCases) func resultsComeBackToTheirCallers(on engine: EngineKind)
    async throws
  {
    // The worker is on another connection where there are some.
    let cluster = try await engine.cluster()
    let other = engine == .embedded ? cluster : try await engine.cluster()
    let label = engine.label()
    let queue = ClusterQueue<Int>(label: label, attributes: .concurrent, on: cluster)
    _ = try await ClusterQueue<Int>(label: label, attributes: .concurrent, on: other).handle(width: 5) {
      Eyes(places: [$0, $0 + 1])
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for item in 0..<30 {
        group.addTask {
          let eyes: Eyes = try await queue.run(item, id: item % 2 == 0 ? "\(item)" : nil)
          #expect(eyes == Eyes(places: [item, item + 1]))
        }
      }
      try await group.waitForAll()
    }
    // An item without a caller keeps none.
    try await queue.async(1)
    try await eventually { try await queue.pendingCount() == 0 }
    await other.shutdown()
    await cluster.shutdown()
  }

  @Test(arguments: EngineKind.allCases) func callerLearnsThatTheItemWasPutAside(on engine: EngineKind)
    async throws
  {
    let cluster = try await engine.cluster()
    var options = ClusterQueueOptions()
    options.attempts = 3
    options.retryDelay = .milliseconds(1)
    let queue = ClusterQueue<Int>(label: engine.label(), options: options, on: cluster)
    let log = Log<Int>()
    _ = try await queue.handle { item -> String in
      log.append(item)
      if item == 1 || log.all.count(where: { $0 == item }) < 3 { throw Failed("no eyes in \(item)") }
      // Beyond the limit, with the quotation marks.
      return String(repeating: "x", count: item == 3 ? 1_040_383 : 1_040_382)
    }
    await #expect(
      throws: ClusterError.itemFailed(queue: queue.label, reason: "no eyes in 1", attempts: 3)
    ) { try await queue.run(1, returning: String.self) }
    // The third attempt counts as any other.
    #expect(try await queue.run(2, returning: String.self).count == 1_040_382)
    let tooLarge = "its result has 1040385 bytes; the most is 1040384"
    await #expect(throws: ClusterError.itemFailed(queue: queue.label, reason: tooLarge, attempts: 3)) {
      try await queue.run(3, returning: String.self)
    }
    #expect(try await queue.failedItems().map(\.item) == [1, 3])
    #expect(try await queue.failedItems().map(\.reason) == ["no eyes in 1", tooLarge])
    #expect(
      ClusterError.itemFailed(queue: "photos", reason: "no eyes", attempts: 3).description
        == "an item of cluster queue \"photos\" was put aside after 3 attempts: no eyes")
    await cluster.shutdown()
  }

  /// The stream of results has as much as an administrator allows. The item ends, and its caller learns why.
  @Test func resultThatTheServersRefuseEndsTheItem() async throws {
    let servers = try await TestServers.start(1)
    defer { servers.stop() }
    let engine = try await NATSEngine.connect(
      servers: servers.addresses, credentials: .none, replicas: 1, timeout: .seconds(300))
    let cluster = Cluster(engine: engine)
    var options = ClusterQueueOptions()
    options.retryDelay = .milliseconds(1)
    let queue = ClusterQueue<Int>(label: "refused", options: options, on: cluster)
    let log = Log<Int>()
    _ = try await queue.handle { item -> Int in
      log.append(item)
      return item + 1
    }
    #expect(try await queue.run(1) == 2)
    let names = NATSNames(label: "refused")
    func limit(to bytes: Int) async throws {
      let configuration = """
        {"name": "\(names.resultsStream)", "subjects": ["\(names.resultsSubject).*"], "max_bytes": \(bytes),
        "max_age": \(options.resultsAreKept.forServers), "discard": "new", "retention": "limits", "storage": "file",
        "num_replicas": 1}
        """
      let answer = try await engine.connection.request(
        "$JS.API.STREAM.UPDATE.\(names.resultsStream)", Array(configuration.utf8))
      let _: NATSNothing = try decoded(answer.bytes)
    }
    try await limit(to: 1)
    let reason = "its result cannot be kept: maximum bytes exceeded (10077)"
    for item in [2, 3] {
      await #expect(throws: ClusterError.itemFailed(queue: "refused", reason: reason, attempts: 1)) {
        try await queue.run(item, id: item == 3 ? "3" : nil, returning: Int.self)
      }
    }
    #expect(log.all == [1, 2, 3])
    #expect(try await queue.failedItems().map(\.reason) == [reason, reason])
    try await eventually { try await queue.pendingCount() == 0 }
    let counts = cluster.figures(of: "refused").counts
    #expect((counts.started, counts.finished, counts.failed, counts.putAside) == (3, 1, 0, 2))
    try await limit(to: -1)
    #expect(try await queue.run(4) == 5)
    await cluster.shutdown()
  }

  @Test(arguments: EngineKind.allCases) func resultOfAnotherKindIsNone(on engine: EngineKind) async throws {
    let cluster = try await engine.cluster()
    let label = engine.label()
    let queue = ClusterQueue<Int>(label: label, on: cluster)
    let nothing = try await queue.handle { _ in }
    await #expect(throws: ClusterError.noResult(queue: label, reason: "its handler returns nothing")) {
      try await queue.run(1, returning: Int.self)
    }
    nothing.cancel()
    await nothing.drained()
    _ = try await queue.handle { item -> Double in item == 0 ? .infinity : 0.5 }
    let error = await #expect(throws: ClusterError.self) { try await queue.run(2, returning: String.self) }
    #expect(
      error?.description.hasPrefix(
        "an item of cluster queue \"\(label)\" has no result: what its handler returned is no String: ")
        == true
    )
    // It cannot be encoded.
    let failure = await #expect(throws: ClusterError.self) { try await queue.run(0, returning: Double.self) }
    guard case .itemFailed(label, let reason, 1) = failure else {
      throw Failed("\(String(describing: failure))")
    }
    #expect(reason.hasPrefix("the result cannot be encoded: "))
    // `async` wants none.
    try await queue.async(3, id: "a")
    let unwanted = ClusterError.noResult(
      queue: label, reason: "\"async\" has submitted the item of that id")
    await #expect(throws: unwanted) { try await queue.run(3, id: "a", returning: Double.self) }
    await cluster.shutdown()
  }

  /// The item of a caller that has ended runs; another caller gets its result, before and after its end.
  @Test(arguments: EngineKind.allCases) func anotherCallerWithTheIdGetsTheResult(on engine: EngineKind)
    async throws
  {
    let cluster = try await engine.cluster()
    let queue = ClusterQueue<Int>(label: engine.label(), on: cluster)
    let (log, gate) = (Log<Int>(), Gate())
    let caller = Task { try await queue.run(1, id: "a", returning: Int.self) }
    try await eventually { try await queue.pendingCount() == 1 }
    caller.cancel()
    await #expect(throws: CancellationError.self) { try await caller.value }
    _ = try await queue.handle { item -> Int in
      log.append(item)
      await gate.pass()
      return item * 10
    }
    await log.until(1)
    async let early = queue.run(2, id: "a", returning: Int.self)
    gate.open()
    #expect(try await early == 10)
    #expect(try await queue.run(3, id: "a", returning: Int.self) == 10)
    #expect(log.all == [1])
    await cluster.shutdown()
  }

  @Test(arguments: EngineKind.allCases) func resultsAreForgotten(on engine: EngineKind) async throws {
    let cluster = try await engine.cluster()
    var options = ClusterQueueOptions()
    options.idsAreKept = .seconds(1)
    options.resultsAreKept = .seconds(1)
    let queue = ClusterQueue<Int>(label: engine.label(), options: options, on: cluster)
    let log = Log<Int>()
    _ = try await queue.handle { item -> Int in
      log.append(item)
      return log.all.count
    }
    #expect(try await queue.run(0, id: "a", returning: Int.self) == 1)
    // With its id, the item is another one from then on.
    try await eventually { try await queue.run(0, id: "a", returning: Int.self) >= 2 }
    await cluster.shutdown()
  }

  @Test(arguments: EngineKind.allCases) func shutdownEndsCallers(on engine: EngineKind) async throws {
    let cluster = try await engine.cluster()
    let queue = ClusterQueue<Int>(label: engine.label(), on: cluster)
    let caller = Task { try await queue.run(1, returning: Int.self) }
    try await eventually { try await queue.pendingCount() == 1 }
    await cluster.shutdown()
    await #expect(throws: ClusterError.closed) { try await caller.value }
  }

  /// Each server is killed once and comes back while callers wait: each gets the result of its own item.
  @Test func killedServersLoseNoResult() async throws {
    let servers = try await TestServers.start(3)
    defer { servers.stop() }
    let (caller, worker) = (
      try await Cluster.connect(servers: servers.addresses, timeout: .seconds(300)),
      try await Cluster.connect(servers: servers.addresses, timeout: .seconds(300))
    )
    var options = ClusterQueueOptions()
    options.patience = .seconds(5)
    _ = try await ClusterQueue<Int>(label: "run", attributes: .concurrent, options: options, on: worker)
      .handle(width: 4) { [$0, -$0] }
    let queue = ClusterQueue<Int>(label: "run", attributes: .concurrent, options: options, on: caller)
    let (log, count) = (Log<Int>(), 600)
    async let calls: Void = withThrowingTaskGroup(of: Void.self) { group in
      for task in 0..<4 {
        group.addTask {
          for item in stride(from: task, to: count, by: 4) {
            let result: [Int] = try await queue.run(item, id: item % 3 == 0 ? "\(item)" : nil)
            #expect(result == [item, -item])
            log.append(item)
          }
        }
      }
      try await group.waitForAll()
    }
    for index in 0..<3 {
      await log.until((3 * index + 1) * count / 10)
      servers.kill(index)
      await log.until((3 * index + 2) * count / 10)
      try await servers.restart(index)
    }
    try await calls
    #expect(log.all.count == count)
    try await eventually { try await queue.pendingCount() == 0 }
    #expect(try await queue.failedItems().isEmpty)
    await worker.shutdown()
    await caller.shutdown()
  }
}
