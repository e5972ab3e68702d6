import Concourse
import ConcourseCluster
import Testing

/// `ClusterGroup`.
@Suite(.timeLimit(.minutes(10))) struct GroupTests {
  @Test(arguments: EngineKind.allCases) func groupIsFinishedWhenItsItemsHaveEnded(on engine: EngineKind)
    async throws
  {
    let cluster = try await engine.cluster()
    // The worker is on another connection where there are some.
    let other = engine == .embedded ? cluster : try await engine.cluster()
    let label = engine.label()
    var options = ClusterQueueOptions()
    options.attempts = 2
    options.retryDelay = .milliseconds(1)
    func queue(on cluster: Cluster) -> ClusterQueue<Int> {
      ClusterQueue<Int>(label: label, attributes: .concurrent, options: options, on: cluster)
    }
    let photos = queue(on: cluster)
    let group = ClusterGroup(label: "one group", of: photos)
    let next = ClusterGroup(label: "another", of: photos)
    // A group without items is finished.
    try await group.finished()
    let (log, gates) = (Log<Int>(), [Gate(), Gate()])
    _ = try await queue(on: other).handle(width: 8) { item in
      log.append(item)
      // One is put aside, one needs a second attempt.
      if item == 3 || item == 4 && log.all.count(where: { $0 == 4 }) == 1 {
        throw Failed("no eyes in \(item)")
      }
      if item >= 6 { await gates[item - 6].pass() }
    }
    for item in 0..<6 { try await photos.async(item, group: group) }
    #expect(try await photos.async(0, id: "a", group: group) == .stored)
    #expect(try await photos.async(0, id: "a", group: next) == .duplicate)
    try await photos.asyncAfter(deadline: .now() + .seconds(1), 6, group: group)
    try await photos.async(7, group: next)

    let notified = Log<String>()
    group.notify(queue: DispatchQueue(label: "eyes")) { notified.append(DispatchQueue.currentLabel) }
    async let finished: Void = group.finished()
    // All but the item at the gate have ended, and the group has not.
    try await eventually { try await photos.pendingCount() == 2 }
    try await eventually { log.all.contains(6) }
    #expect(notified.all.isEmpty)
    gates[0].open()
    try await finished
    #expect(await notified.until(1) == ["eyes"])
    #expect(log.all.filter { $0 < 7 }.sorted() == [0, 0, 1, 2, 3, 3, 4, 4, 5, 6])
    #expect(try await photos.failedItems().map(\.item) == [3])
    // The item of the other group holds only that one.
    #expect(try await photos.pendingCount() == 1)
    gates[1].open()
    try await next.finished()
    // A group can be used again.
    try await photos.async(0, group: group)
    try await group.finished()
    #expect(log.all.count == 12)
    await other.shutdown()
    await cluster.shutdown()
  }

  @Test(arguments: EngineKind.allCases) func itemBeforeItsDeadlineHoldsItsGroup(on engine: EngineKind)
    async throws
  {
    let cluster = try await engine.cluster()
    let queue = ClusterQueue<Int>(label: engine.label(), on: cluster)
    let group = ClusterGroup(label: "-", of: queue)
    let log = Log<Int>()
    _ = try await queue.handle { log.append($0) }
    try await queue.asyncAfter(deadline: .now() + .seconds(2), 1, id: "late", group: group)
    // Items without a group do not matter.
    try await queue.asyncAfter(deadline: .now() + .seconds(3_600), 2)
    try await group.finished()
    #expect(log.all == [1])
    await cluster.shutdown()
  }

  @Test(arguments: EngineKind.allCases) func waitingForAGroupEndsWithTaskAndCluster(on engine: EngineKind)
    async throws
  {
    let cluster = try await engine.cluster()
    let queue = ClusterQueue<Int>(label: engine.label(), on: cluster)
    let group = ClusterGroup(label: "group", of: queue)
    try await queue.async(1, group: group)
    let waiters = (1...2).map { _ in Task { try await group.finished() } }
    waiters[0].cancel()
    await #expect(throws: CancellationError.self) { try await waiters[0].value }
    await cluster.shutdown()
    await #expect(throws: ClusterError.closed) { try await waiters[1].value }
  }

  @Test func misuseOfGroupsSaysWhatItIs() async {
    func text(_ result: ExitTest.Result?) -> String {
      String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    }
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let (first, second) = (
        ClusterQueue<Int>(label: "first", on: .embedded()),
        ClusterQueue<Int>(label: "second", on: .embedded())
      )
      _ = try? await first.async(1, group: ClusterGroup(label: "group", of: second))
    }
    #expect(
      text(result).contains(
        "an item of cluster queue \"first\" cannot enter group \"group\" of queue \"second\""))
    let unnamed = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = ClusterGroup(label: "", of: ClusterQueue<Int>(label: "first", on: .embedded()))
    }
    #expect(text(unnamed).contains("a cluster group needs a label of 1 to 200 letters"))
  }

  /// Each server is killed once and comes back. No group is finished before its last item has run, and each is in the
  /// end: by waiters that were there before, and by a process that has not submitted the items.
  @Test func killedServersNeitherEndAGroupEarlyNorHoldIt() async throws {
    let servers = try await TestServers.start(3)
    defer { servers.stop() }
    let clusters = [
      try await Cluster.connect(servers: servers.addresses, timeout: .seconds(300)),
      try await Cluster.connect(servers: servers.addresses, timeout: .seconds(300)),
      try await Cluster.connect(servers: servers.addresses, timeout: .seconds(300)),
    ]
    var options = ClusterQueueOptions()
    options.patience = .seconds(5)
    let queues = clusters.map {
      ClusterQueue<Int>(label: "grouped", attributes: .concurrent, options: options, on: $0)
    }
    let (log, rounds) = (Log<Int>(), Log<Int>())
    _ = try await queues[1].handle(width: 4) { log.append($0) }
    let (size, count) = (5, 60)
    async let submissions: Void = {
      for round in 0..<count {
        let name = "round-\(round)"
        for item in 0..<size {
          try await queues[0].async(
            round * size + item, id: item == 0 ? "\(round)" : nil,
            group: ClusterGroup(label: name, of: queues[0]))
        }
        // Another process, which knows only the name.
        try await ClusterGroup(label: name, of: queues[2]).finished()
        let items = Set(round * size..<(round + 1) * size)
        #expect(items.subtracting(log.all).isEmpty)
        rounds.append(round)
      }
    }()
    for index in 0..<3 {
      await rounds.until((3 * index + 1) * count / 10)
      servers.kill(index)
      await rounds.until((3 * index + 2) * count / 10)
      try await servers.restart(index)
    }
    try await submissions
    #expect(Set(log.all) == Set(0..<size * count))
    for cluster in clusters { await cluster.shutdown() }
  }
}
