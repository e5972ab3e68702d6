import Concourse
import ConcourseCluster
import Testing

/// `cancel(id:)`.
@Suite(.timeLimit(.minutes(10))) struct CancellationTests {
  @Test(arguments: EngineKind.allCases) func itemThatHasNotStartedDoesNotRun(on engine: EngineKind)
    async throws
  {
    let cluster = try await engine.cluster()
    let queue = ClusterQueue<Int>(label: engine.label(), on: cluster)
    let group = ClusterGroup(label: "group", of: queue)
    let (log, gate) = (Log<Int>(), Gate())
    #expect(try await queue.cancel(id: "a") == .notPending)
    try await queue.async(1, id: "a", group: group)
    try await queue.asyncAfter(deadline: .now() + .seconds(3_600), 2, id: "b", group: group)
    try await queue.async(3, id: "c")
    let caller = Task { try await queue.run(4, id: "d", returning: Int.self) }
    try await eventually { try await queue.pendingCount() == 4 }
    for id in ["a", "b", "d"] {
      #expect(try await queue.cancel(id: id) == .cancelled)
      #expect(try await queue.cancel(id: id) == .notPending)
    }
    try await group.finished()
    await #expect(throws: ClusterError.itemCancelled(queue: queue.label)) { try await caller.value }
    // The id remains taken.
    #expect(try await queue.async(1, id: "a") == .duplicate)
    try await eventually { try await queue.pendingCount() == 1 }
    _ = try await queue.handle { item in
      log.append(item)
      await gate.pass()
    }
    await log.until(1)
    #expect(try await queue.cancel(id: "c") == .started)
    gate.open()
    try await queue.async(5)
    #expect(await log.until(2) == [3, 5])
    #expect(try await queue.cancel(id: "c") == .notPending)
    try await eventually { try await queue.pendingCount() == 0 }
    await cluster.shutdown()
  }

  @Test(arguments: EngineKind.allCases) func cancelledItemDoesNotStartAgain(on engine: EngineKind)
    async throws
  {
    let cluster = try await engine.cluster()
    var options = ClusterQueueOptions()
    options.retryDelay = .milliseconds(1)
    let queue = ClusterQueue<Int>(label: engine.label(), options: options, on: cluster)
    let (log, gate) = (Log<Int>(), Gate())
    _ = try await queue.handle { item in
      log.append(item)
      await gate.pass()
      throw Failed("no eyes in \(item)")
    }
    let caller = Task { try await queue.run(1, id: "a", returning: Int.self) }
    await log.until(1)
    #expect(try await queue.cancel(id: "a") == .started)
    gate.open()
    await #expect(throws: ClusterError.itemCancelled(queue: queue.label)) { try await caller.value }
    try await eventually { try await queue.pendingCount() == 0 }
    #expect(log.all == [1])
    #expect(try await queue.failedItems().isEmpty)
    await cluster.shutdown()
  }

  /// Whatever is said of an item holds, although workers start items at the same time, and move some that are due.
  @Test(arguments: EngineKind.allCases) func answersHoldWhileItemsStart(on engine: EngineKind) async throws {
    try await answersHold(on: engine, label: engine.label(), .concurrent) { _ in (nil, []) }
  }

  @Test(arguments: EngineKind.allCases) func answersHoldInLines(on engine: EngineKind) async throws {
    try await answersHold(on: engine, label: engine.label(), [.concurrent, .barriers]) { item in
      item % 7 == 0 ? (nil, .barrier) : (item % 3 == 0 ? nil : "\(item % 3)", [])
    }
  }

  private func answersHold(
    on engine: EngineKind, label: String, _ attributes: ClusterQueueAttributes,
    order: (Int) -> (key: String?, flags: ClusterItemFlags)
  ) async throws {
    let cluster = try await engine.cluster()
    let worker = engine == .embedded ? cluster : try await engine.cluster()
    let queue = ClusterQueue<Int>(label: label, attributes: attributes, on: cluster)
    let log = Log<Int>()
    let count = 60
    for item in 0..<count {
      let (key, flags) = order(item)
      if item % 2 == 0 {
        try await queue.async(item, key: key, flags: flags, id: "\(item)")
      } else {
        try await queue.asyncAfter(
          deadline: .now() + .milliseconds(500), item, key: key, flags: flags, id: "\(item)")
      }
    }
    _ = try await ClusterQueue<Int>(label: label, attributes: attributes, on: worker).handle(width: 2) {
      item in
      log.append(item)
      await Task.yield()
    }
    let answers = try await withThrowingTaskGroup(of: (Int, ClusterCancellation).self) { group in
      for item in 0..<count { group.addTask { (item, try await queue.cancel(id: "\(item)")) } }
      return try await group.reduce(into: [Int: ClusterCancellation]()) { $0[$1.0] = $1.1 }
    }
    try await eventually { try await queue.pendingCount() == 0 }
    #expect(Set(log.all).count == log.all.count)
    for item in 0..<count {
      switch answers[item] {
      case .cancelled: #expect(!log.all.contains(item))
      case .notPending: #expect(log.all.contains(item))
      // On servers, the worker that has it may see the mark before it starts it.
      case .started: #expect(log.all.contains(item) || engine == .servers)
      case nil: Issue.record("no answer for \(item)")
      }
    }
    await worker.shutdown()
    await cluster.shutdown()
  }
}
