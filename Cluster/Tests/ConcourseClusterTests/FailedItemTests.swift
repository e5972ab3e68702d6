import Testing

@testable import ConcourseCluster

/// Items that were put aside.
@Suite(.timeLimit(.minutes(10))) struct FailedItemTests {
  /// By programs at the same time, and by one after another that has ended between both steps.
  @Test(arguments: EngineKind.allCases) func itemThatIsPutBackMoreThanOnceRunsOnce(on engine: EngineKind)
    async throws
  {
    let cluster = try await engine.cluster()
    var options = ClusterQueueOptions()
    options.attempts = 1
    let label = engine.label()
    let queue = ClusterQueue<Int>(label: label, options: options, on: cluster)
    let (log, mended) = (Log<Int>(), Log<Bool>())
    _ = try await queue.handle { item in
      log.append(item)
      if mended.all.isEmpty { throw Failed("no eyes in \(item)") }
    }
    for item in 0..<3 { try await queue.async(item) }
    try await eventually { try await queue.failedItems().count == 3 }
    mended.append(true)
    let numbers = try await queue.failedItems().map(\.number)
    let settings = QueueSettings(label: label, attributes: [], options: options)
    if let queue = try await cluster.open(settings) as? NATSQueue { try await queue.submitAgain(numbers[0]) }
    try await queue.putBack(numbers[0])
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<8 {
        group.addTask {
          do {
            try await queue.putBack(numbers[1])
          } catch {
            #expect(error as? ClusterError == .noSuchFailure(queue: label, number: numbers[1]))
          }
        }
      }
    }
    try await queue.async(3)
    try await eventually { try await queue.pendingCount() == 0 }
    #expect(log.all == [0, 1, 2, 0, 1, 3])
    #expect(try await queue.failedItems().map(\.item) == [2])
    await cluster.shutdown()
  }
}
