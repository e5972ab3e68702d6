import Testing

@testable import ConcourseCluster

/// Items that were put aside.
@Suite(.timeLimit(.minutes(10))) struct FailedItemTests {
  /// All parts of names as they should not be, and as long as they may be, on each way of an item.
  @Test(arguments: [" ", ".", "*", ">", "\r\n", "é"]) func namesOfAnyBytes(_ text: String) async throws {
    let cluster = try await EngineKind.servers.cluster()
    @Sendable func long(_ bytes: Int) -> String { String(repeating: text, count: bytes / text.utf8.count) }
    let number = String(EngineKind.servers.label("").dropFirst())
    var options = ClusterQueueOptions()
    options.attempts = 1
    let queue = ClusterQueue<Int>(
      label: number + long(60), attributes: .concurrent, options: options, on: cluster)
    let group = ClusterGroup(label: long(60), of: queue)
    let (log, mended) = (Log<Int>(), Log<Bool>())
    try await queue.suspend()
    for (item, name) in [long(256), text, ""].enumerated() {
      try await queue.async(item, key: name, id: name, group: group)
      #expect(try await queue.async(item, key: name, id: name, group: group) == .duplicate)
    }
    #expect(try await queue.cancel(id: text) == .cancelled)
    _ = try await queue.handle { item -> Int in
      log.append(item)
      if mended.all.isEmpty { throw Failed(long(300)) }
      return item
    }
    try await queue.resume()
    try await group.finished()
    #expect(Set(log.all) == [0, 2])
    let failures = try await queue.failedItems()
    #expect(failures.map(\.reason) == [long(300), long(300)])
    mended.append(true)
    for failure in failures { try await queue.putBack(failure.number) }
    await log.until(4)
    #expect(try await queue.run(7, key: text, id: long(255), group: group) == 7)
    try await eventually { try await queue.pendingCount() == 0 }
    await cluster.shutdown()
  }

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
