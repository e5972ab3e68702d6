import Concourse
import Glibc
import Testing

@testable import ConcourseCluster

/// Workers in processes of their own, which are killed and stopped while they have an item.
@Suite(.serialized, .timeLimit(.minutes(10))) struct WorkerTests {
  /// What a worker process must know.
  struct Work: Codable, Sendable {
    var addresses: [String]
    var label: String
    var options: Options
    struct Options: Codable {
      var patience: Int
      var attempts: Int
      /// Whether the queue is concurrent, and all items have the same key.
      var isKeyed = false
    }

    /// A connection of this process, which ends with the test's time if nothing else ends it.
    func workersCluster() async throws -> Cluster {
      alarm(600)
      return try await cluster()
    }

    func cluster() async throws -> Cluster {
      try await Cluster.connect(servers: addresses, timeout: .seconds(300))
    }

    var queueOptions: ClusterQueueOptions {
      var queueOptions = ClusterQueueOptions()
      queueOptions.patience = .seconds(options.patience)
      queueOptions.attempts = options.attempts
      queueOptions.retryDelay = .milliseconds(1)
      return queueOptions
    }

    func queue(on cluster: Cluster) -> ClusterQueue<Int> {
      ClusterQueue<Int>(
        label: label, attributes: options.isKeyed ? [.concurrent, .barriers] : [], options: queueOptions,
        on: cluster)
    }

    /// The same with another queue.
    func beside(_ name: String) -> Work {
      var work = self
      work.label += ".\(name)"
      return work
    }

    func submit(_ item: Int, to queue: ClusterQueue<Int>) async throws {
      try await queue.async(item, key: options.isKeyed ? "key" : nil)
    }
  }

  private func work(_ name: String, attempts: Int, isKeyed: Bool = false) async throws -> Work {
    Work(
      addresses: try await TestServers.shared.value.addresses, label: EngineKind.servers.label(name),
      options: .init(patience: 2, attempts: attempts, isKeyed: isKeyed))
  }

  @Test func anotherWorkerGetsTheItemOfAKilledOne() async throws {
    let work = try await work("killed", attempts: 3)
    let cluster = try await work.cluster()
    let queue = work.queue(on: cluster)
    for item in 0..<3 { try await queue.async(item) }
    await #expect(processExitsWith: .signal(SIGKILL)) { [work = work as Work] in
      let cluster = try await work.workersCluster()
      _ = try await work.queue(on: cluster).handle { item in
        if item == 1 { raise(SIGKILL) }
      }
      await Gate().pass()
    }
    let log = Log<Int>()
    _ = try await queue.handle { log.append($0) }
    #expect(await log.until(2) == [1, 2])
    await cluster.shutdown()
  }

  /// The items of its key that wait in these workers lose no attempt.
  @Test(arguments: [false, true]) func itemThatKillsItsWorkersIsPutAside(isKeyed: Bool) async throws {
    let work = try await work("poison", attempts: 2, isKeyed: isKeyed)
    let cluster = try await work.cluster()
    let queue = work.queue(on: cluster)
    for item in 0..<2 { try await work.submit(item, to: queue) }
    for _ in 1...2 {
      await #expect(processExitsWith: .signal(SIGKILL)) { [work = work as Work] in
        let cluster = try await work.workersCluster()
        let gate = Gate()
        _ = try await work.queue(on: cluster).handle(width: 2) { item in
          if item == 2 { return gate.open() }
          // The item without a key comes behind the one that waits.
          if work.options.isKeyed {
            try await work.queue(on: cluster).async(2)
            await gate.pass()
          }
          raise(SIGKILL)
        }
        await Gate().pass()
      }
    }
    let log = Log<Int>()
    _ = try await queue.handle { log.append($0) }
    try await eventually { try await queue.pendingCount() == 0 }
    #expect(log.all.filter { $0 != 2 } == [1])
    // Item 2 ran in them; its acknowledgement may have died with them.
    let failures = try await queue.failedItems().filter { $0.item != 2 }
    #expect(failures.map(\.item) == [0])
    // More of them if the request of a killed one has got the item.
    #expect(
      failures.first?.reason.hasSuffix(
        "; the last worker ended, or lost its connection, while it had it") == true)
    await cluster.shutdown()
  }

  /// The items behind a barrier wait until another worker has finished it.
  @Test func barrierOfAKilledWorkerRunsElsewhere() async throws {
    let work = try await work("barrier", attempts: 3, isKeyed: true)
    let cluster = try await work.cluster()
    let queue = work.queue(on: cluster)
    for item in 0..<6 { try await queue.async(item, flags: item == 2 ? .barrier : []) }
    await #expect(processExitsWith: .signal(SIGKILL)) { [work = work as Work] in
      let cluster = try await work.workersCluster()
      _ = try await work.queue(on: cluster).handle(width: 3) { item in
        if item == 2 { raise(SIGKILL) }
      }
      await Gate().pass()
    }
    try await eventually { try await queue.pendingCount() == 4 }
    let log = Log<Int>()
    _ = try await queue.handle(width: 3) { log.append($0) }
    let items = await log.until(4)
    #expect(items.first == 2)
    #expect(Set(items) == [2, 3, 4, 5])
    #expect(try await queue.failedItems().isEmpty)
    await cluster.shutdown()
  }

  /// A process that submits items of a group, and dies before it has submitted all of them.
  @Test func groupOfAKilledSubmitterIsFinished() async throws {
    let work = try await work("submitter", attempts: 3)
    await #expect(processExitsWith: .signal(SIGKILL)) { [work = work as Work] in
      let queue = work.queue(on: try await work.workersCluster())
      let group = ClusterGroup(label: "journey", of: queue)
      for item in 0..<5 { try await queue.async(item, group: group) }
      try await queue.asyncAfter(deadline: .now() + .seconds(1), 5, id: "5", group: group)
      raise(SIGKILL)
    }
    let cluster = try await work.cluster()
    let queue = work.queue(on: cluster)
    let (log, finished) = (Log<Int>(), Log<Bool>())
    let group = ClusterGroup(label: "journey", of: queue)
    async let waiting: Void = {
      try await group.finished()
      finished.append(true)
    }()
    try await eventually { try await queue.pendingCount() == 6 }
    #expect(finished.all.isEmpty)
    _ = try await queue.handle { log.append($0) }
    try await waiting
    #expect(log.all == Array(0...5))
    await cluster.shutdown()
  }

  /// A worker that dies in its handler, and then a caller that dies while it waits: another caller gets the result.
  @Test func resultOfKilledWorkerAndCallerIsThere() async throws {
    let work = try await work("caller", attempts: 5)
    async let callerHasEnded: Void = {
      await #expect(processExitsWith: .signal(SIGKILL)) { [work = work as Work] in
        let queue = work.queue(on: try await work.workersCluster())
        async let result = queue.run(20, id: "a", returning: Int.self)
        try await eventually { try await queue.pendingCount() == 1 }
        async let workerHasEnded: Void = {
          _ = try await queue.handle { _ -> Int in
            raise(SIGKILL)
            return 0
          }
        }()
        _ = try await (result, workerHasEnded)
      }
    }()
    await callerHasEnded
    let cluster = try await work.cluster()
    let queue = work.queue(on: cluster)
    let log = Log<Int>()
    _ = try await queue.handle { item -> Int in
      log.append(item)
      return item + 1
    }
    #expect(try await queue.run(30, id: "a", returning: Int.self) == 21)
    #expect(log.all == [20])
    await cluster.shutdown()
  }

  /// A stopped worker loses its item. When it goes on, its acknowledgement must not count while another worker runs the
  /// item: the next one would start beside it.
  @Test(arguments: [false, true]) func lateAcknowledgementDoesNotCount(isKeyed: Bool) async throws {
    let work = try await work("stopped", attempts: 5, isKeyed: isKeyed)
    let cluster = try await work.cluster()
    let queue = work.queue(on: cluster)
    var processes = work
    processes.label += ".processes"
    let stopped = processes.queue(on: cluster)
    for item in 0..<2 { try await work.submit(item, to: queue) }

    // The worker says which process it is, stops, and ends when its handler has returned.
    async let workerHasEnded: Void = {
      await #expect(processExitsWith: .exitCode(7)) { [work = work as Work, processes = processes as Work] in
        let cluster = try await work.workersCluster()
        let stopped = processes.queue(on: cluster)
        let handled = Gate()
        let registration = try await work.queue(on: cluster).handle { _ in
          try await stopped.async(Int(getpid()))
          raise(SIGSTOP)
          handled.open()
        }
        await handled.pass()
        registration.cancel()
        await registration.drained()
        exit(7)
      }
    }()
    let identifiers = Log<Int>()
    _ = try await stopped.handle { identifiers.append($0) }
    let process = pid_t(await identifiers.until(1)[0])
    let guardian = try Guardian(of: process)
    defer { guardian.end() }

    let (log, gate) = (Log<Int>(), Gate())
    _ = try await queue.handle(width: 2) { item in
      log.append(item)
      if item == 0 { await gate.pass() }
    }
    #expect(await log.until(1) == [0])
    kill(process, SIGCONT)
    await workerHasEnded
    #expect(try await queue.pendingCount() == 2)
    #expect(log.all == [0])
    gate.open()
    #expect(await log.until(2) == [0, 1])
    await cluster.shutdown()
  }

  /// A worker that is stopped while it waits for an item gets one into its socket, which another worker gets after the
  /// patience. When it goes on it does not run the item.
  @Test func itemInTheSocketOfAStoppedWorkerRunsElsewhere() async throws {
    let work = try await work("socket", attempts: 5)
    let cluster = try await work.cluster()
    let queue = work.queue(on: cluster)
    let (news, ends) = (work.beside("news"), work.beside("ends"))
    async let workerHasEnded: Void = {
      await #expect(processExitsWith: .exitCode(7)) {
        [work = work as Work, news = news as Work, ends = ends as Work] in
        let cluster = try await work.workersCluster()
        let (queue, ended) = (news.queue(on: cluster), Gate())
        let registration = try await work.queue(on: cluster).handle { item in try await queue.async(-item) }
        _ = try await ends.queue(on: cluster).handle { _ in ended.open() }
        try await queue.async(Int(getpid()))
        await ended.pass()
        registration.cancel()
        await registration.drained()
        exit(7)
      }
    }()
    let told = Log<Int>()
    _ = try await news.queue(on: cluster).handle { told.append($0) }
    let process = pid_t(await told.until(1)[0])
    let guardian = try Guardian(of: process)
    defer { guardian.end() }
    let engineQueue = try #require(
      try await cluster.open(
        QueueSettings(label: work.label, attributes: [], options: work.queueOptions)) as? NATSQueue)
    // Its request for items may end while it is stopped, before one is there.
    var item = 0
    repeat {
      item += 1
      kill(process, SIGSTOP)
      try await queue.async(item)
      let end = ContinuousClock.now + .seconds(1)
      var isGiven = false
      while !isGiven, .now < end {
        isGiven = try await engineQueue.consumerInfo(of: engineQueue.names.stream).num_ack_pending == 1
      }
      if isGiven { break }
      kill(process, SIGCONT)
      try await eventually { try await queue.pendingCount() == 0 }
    } while true
    let (log, gate) = (Log<Int>(), Gate())
    _ = try await queue.handle { item in
      log.append(item)
      await gate.pass()
    }
    try await queue.async(item + 1)
    await log.until(1)
    try await ends.queue(on: cluster).async(0)
    kill(process, SIGCONT)
    await workerHasEnded
    // It has sent no acknowledgement either, after which the next item would run beside this one.
    #expect(log.all == [item])
    #expect(try await queue.pendingCount() == 2)
    gate.open()
    #expect(await log.until(2) == [item, item + 1])
    #expect(!told.all.contains(-item))
    await cluster.shutdown()
  }
}
