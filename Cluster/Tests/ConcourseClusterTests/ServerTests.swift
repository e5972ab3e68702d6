import Glibc
import Synchronization
import Testing

@testable import ConcourseCluster

/// What only servers can do: refuse, be missing, and be killed.
@Suite(.timeLimit(.minutes(10))) struct ServerTests {
  @Test func serverThatIsNotThere() async throws {
    let servers = try await TestServers.start(1)
    let addresses = servers.addresses
    servers.stop()
    let error = await #expect(throws: ClusterError.self) { try await Cluster.connect(servers: addresses) }
    #expect(error == .unreachable(servers: addresses, reason: "No server available for connection"))
    #expect(
      error?.description
        == "no server of the cluster can be reached (\(addresses[0])): No server available for connection")
  }

  @Test func wrongPassword() async throws {
    let servers = try await TestServers.start(
      1, authorization: "authorization { user: \"worker\", password: \"right\" }")
    defer { servers.stop() }
    for credentials in [ClusterCredentials.none, .password(user: "worker", password: "wrong")] {
      let error = await #expect(throws: ClusterError.self) {
        try await Cluster.connect(servers: servers.addresses, credentials: credentials)
      }
      guard case .refused(servers.addresses, let reason) = error else {
        Issue.record("\(String(describing: error))")
        continue
      }
      #expect(reason.contains("uthorization"))
    }
    let cluster = try await Cluster.connect(
      servers: servers.addresses, credentials: .password(user: "worker", password: "right"), replicas: 1)
    try await ClusterQueue<Int>(label: "open", on: cluster).async(1)
    await cluster.shutdown()
  }

  @Test func serverWithoutJetStream() async throws {
    let servers = try await TestServers.start(1, jetStream: false)
    defer { servers.stop() }
    let cluster = try await Cluster.connect(servers: servers.addresses, timeout: .seconds(1))
    let queue = ClusterQueue<Int>(label: "nowhere", on: cluster)
    await #expect(
      throws: ClusterError.engine(
        queue: "nowhere", reason: "no server answers for it: JetStream is off there, or has no leader now")
    ) { try await queue.async(1) }
    await cluster.shutdown()
  }

  /// Servers that do not know how to find a message by its subject say so, in two ways.
  @Test func oldServersAreToldApart() async throws {
    let servers = try await TestServers.start(1, jetStream: false)
    defer { servers.stop() }
    let old = try await NATSEngine.connect(
      servers: servers.addresses, credentials: .none, replicas: 1, timeout: .seconds(300))
    let refusal = "{\"error\": {\"code\": 400, \"err_code\": 10003, \"description\": \"bad request\"}}"
    let another = "{\"message\": {\"subject\": \"concourse.old.failed.a\", \"seq\": 1}}"
    let answer = Mutex(refusal)
    let subscription = try old.connection.subscribe("$JS.API.>") { message in
      let text = message.subject.contains(".MSG.GET.") ? answer.withLock { $0 } : "{}"
      try? old.connection.publish(message.reply!, Array(text.utf8))
    }
    let cluster = try await Cluster.connect(servers: servers.addresses, timeout: .seconds(300))
    let queue = ClusterQueue<Int>(label: "old", on: cluster)
    for text in [refusal, another] {
      answer.withLock { $0 = text }
      await #expect(
        throws: ClusterError.engine(
          queue: "old",
          reason: "a server is too old: it does not find messages by their subjects. NATS 2.9 does")
      ) { try await queue.async(1) }
    }
    subscription.drain()
    await cluster.shutdown()
    await old.close()
  }

  @Test func moreReplicasThanServers() async throws {
    let servers = try await TestServers.start(1)
    defer { servers.stop() }
    let cluster = try await Cluster.connect(servers: servers.addresses)
    let queue = ClusterQueue<Int>(label: "three", on: cluster)
    await #expect(
      throws: ClusterError.engine(
        queue: "three", reason: "replicas > 1 not supported in non-clustered mode (10074)")
    ) { try await queue.async(1) }
    await cluster.shutdown()
  }

  /// Each server is killed once and comes back, while items are submitted one after the other and run.
  @Test func killedServersLoseNothing() async throws {
    let servers = try await TestServers.start(3)
    defer { servers.stop() }
    let (producer, worker) = (
      try await Cluster.connect(servers: servers.addresses, timeout: .seconds(300)),
      try await Cluster.connect(servers: servers.addresses, timeout: .seconds(300))
    )
    var options = ClusterQueueOptions()
    options.patience = .seconds(5)
    let (log, gauge) = (Log<Int>(), Gauge())
    _ = try await ClusterQueue<Int>(label: "serial", options: options, on: worker).handle { item in
      gauge.enter()
      log.append(item)
      gauge.leave()
    }
    let queue = ClusterQueue<Int>(label: "serial", options: options, on: producer)
    let count = 1_200
    async let submissions: Void = {
      for item in 0..<count {
        // Ids, and their repetitions, must make no difference.
        try await queue.async(item, id: item % 2 == 0 ? "\(item)" : nil)
        if item % 2 == 0 { #expect(try await queue.async(item, id: "\(item)") == .duplicate) }
      }
    }()
    for index in 0..<3 {
      await log.until((3 * index + 1) * count / 10)
      servers.kill(index)
      await log.until((3 * index + 2) * count / 10)
      try await servers.restart(index)
    }
    try await submissions
    // An item runs once in one process, also if its acknowledgement was lost.
    #expect(await log.until(count) == Array(0..<count))
    try await eventually { try await queue.pendingCount() == 0 }
    #expect(log.all.count == count)
    #expect(gauge.most == 1)
    #expect(try await queue.failedItems().isEmpty)
    await worker.shutdown()
    await producer.shutdown()
  }

  /// All servers at once: what was acknowledged is in their files.
  @Test func itemsOutliveAllServers() async throws {
    let servers = try await TestServers.start(3)
    defer { servers.stop() }
    let cluster = try await Cluster.connect(servers: servers.addresses, timeout: .seconds(300))
    let queue = ClusterQueue<Int>(label: "kept", on: cluster)
    for item in 0..<100 { try await queue.async(item) }
    for index in 0..<3 { servers.kill(index) }
    for index in 0..<3 { try await servers.restart(index) }
    // On the connection that was cut.
    try await queue.async(100)
    let log = Log<Int>()
    _ = try await queue.handle { log.append($0) }
    #expect(await log.until(101) == Array(0...100))
    await cluster.shutdown()
  }

  /// The acknowledgement of an item that was lost with the connection would count for the worker that has it by then.
  @Test func nothingIsKeptForTheNextConnection() async throws {
    let servers = try await TestServers.start(1, jetStream: false)
    defer { servers.stop() }
    let engine = try await NATSEngine.connect(
      servers: servers.addresses, credentials: .none, replicas: 1, timeout: .seconds(300))
    let got = Log<[UInt8]>()
    let subscription = try engine.connection.subscribe("later") { got.append($0.bytes) }
    servers.kill(0)
    try await eventually { (try? engine.connection.publish("elsewhere", [0])) == nil }
    for _ in 1...10 {
      #expect(throws: NATSFailure.self) { try engine.connection.publish("later", [1]) }
      await #expect(throws: NATSFailure.self) { try await engine.connection.request("later", [2]) }
    }
    try await servers.restart(0)
    try await eventually { (try? engine.connection.publish("later", [3])) != nil }
    #expect(await got.until(1) == [[3]])
    subscription.drain()
    await engine.close()
  }

  /// Without a deadline for writing, the thread would wait until the server goes on.
  @Test func stoppedServerHoldsNoThread() async throws {
    let servers = try await TestServers.start(1, jetStream: false)
    defer { servers.stop() }
    let engine = try await NATSEngine.connect(
      servers: servers.addresses, credentials: .none, replicas: 1, timeout: .seconds(300))
    servers.signal(0, SIGSTOP)
    let bytes = [UInt8](repeating: 0, count: 1_000_000)
    try await eventually { (try? engine.connection.publish("unheard", bytes)) == nil }
    servers.signal(0, SIGCONT)
    try await eventually { (try? engine.connection.publish("unheard", [])) != nil }
    await engine.close()
  }

  /// The library gives up where credentials are refused twice. Then a worker, a caller and a group that wait go on with
  /// another connection.
  @Test func connectionThatTheLibraryHasGivenUpIsMadeAgain() async throws {
    func password(_ text: String) -> String { "authorization { user: \"me\", password: \"\(text)\" }" }
    let servers = try await TestServers.start(1, authorization: password("right"))
    defer { servers.stop() }
    let engine = try await NATSEngine.connect(
      servers: servers.addresses, credentials: .password(user: "me", password: "right"), replicas: 1,
      timeout: .seconds(300))
    let cluster = Cluster(engine: engine)
    let queue = ClusterQueue<Int>(label: "given up", on: cluster)
    let group = ClusterGroup(label: "group", of: queue)
    let (log, ended) = (Log<Int>(), Log<Bool>())
    let first = engine.connection.link.handle
    let registration = try await queue.handle { item -> Int in
      log.append(item)
      return item + 1
    }
    #expect(try await queue.run(1) == 2)
    try await queue.suspend()
    try await queue.async(2, group: group)
    async let result: Int = queue.run(3)
    async let finished: Void = group.finished()
    try await eventually { try await queue.pendingCount() == 2 }
    let end: @Sendable () -> Void = { ended.append(true) }
    let subscription = try engine.connection.subscribe("news", ended: end) { _ in }
    servers.kill(0)
    try servers.configure(0, password("wrong"))
    try await servers.restart(0)
    try await eventually { first.isGivenUp }
    #expect(ended.all.isEmpty)
    // Subscriptions that begin, or end, without a connection.
    let news = Log<[UInt8]>()
    let later = try engine.connection.subscribe("news") { news.append($0.bytes) }
    subscription.drain()
    await ended.until(1)
    servers.kill(0)
    try servers.configure(0, password("right"))
    try await servers.restart(0)
    try await queue.resume()
    #expect(try await result == 4)
    try await finished
    #expect(log.all == [1, 2, 3])
    try engine.connection.publish("news", [7])
    #expect(await news.until(1) == [[7]])
    later.drain()
    registration.cancel()
    await registration.drained()
    await cluster.shutdown()
    await #expect(throws: ClusterError.closed) { try await queue.async(4) }
  }

  /// A leader that is cut off from the others answers, although another one may give out items. `cancel` does not believe
  /// what it says has been given out.
  @Test func leaderWithoutMajorityIsNotBelieved() async throws {
    let servers = try await TestServers.start(3)
    defer { servers.stop() }
    func queue(at addresses: [String]) async throws -> NATSQueue {
      let engine = try await NATSEngine.connect(
        servers: addresses, credentials: .none, replicas: 3, timeout: .seconds(300))
      let settings = QueueSettings(label: "cut off", attributes: [], options: ClusterQueueOptions())
      return try #require(try await engine.open(settings) as? NATSQueue)
    }
    let first = try await queue(at: servers.addresses)
    let name = try #require(try await first.consumerInfo(of: first.names.stream).cluster?.leader)
    let leader = try #require(name.split(separator: "-").last.flatMap { Int($0) })
    let queue = try await queue(at: [servers.addresses[leader]])
    #expect(try await queue.lastDelivered() == 0)
    for index in 0..<3 where index != leader { servers.signal(index, SIGSTOP) }
    var answer: NATSConsumerInfo
    repeat {
      answer = try await queue.ask(
        "CONSUMER.INFO.\(queue.names.stream).\(queue.names.consumer)", NATSNothing(), repeatedFor: .zero)
    } while answer.isConfirmed
    #expect(answer.cluster?.leader == name)
    await #expect(throws: NATSFailure.self) { try await queue.lastDelivered(repeatedFor: .zero) }
    for index in 0..<3 where index != leader { servers.signal(index, SIGCONT) }
    #expect(try await queue.lastDelivered() == 0)
    await queue.engine.close()
    await first.engine.close()
  }

  /// A leader of the marks that is cut off says that an item was not cancelled. That is believed before its first start only,
  /// which `cancel` does not rule out.
  @Test func cutOffLeaderDoesNotStartACancelledItemAgain() async throws {
    struct Info: Decodable { var cluster: NATSCluster }
    let servers = try await TestServers.start(3)
    defer { servers.stop() }
    let settings = QueueSettings(label: "marks", attributes: [], options: ClusterQueueOptions())
    func engine(at addresses: [String], timeout: Duration) async throws -> NATSEngine {
      try await NATSEngine.connect(servers: addresses, credentials: .none, replicas: 3, timeout: timeout)
    }
    let first = try await engine(at: servers.addresses, timeout: .seconds(300))
    _ = try await first.open(settings)
    let names = NATSNames(label: "marks")
    let info: Info = try await first.ask("STREAM.INFO.\(names.idsStream)", NATSNothing())
    let leader = try #require(info.cluster.leader?.split(separator: "-").last.flatMap { Int($0) })
    let queue = NATSQueue(
      settings, on: try await engine(at: [servers.addresses[leader]], timeout: .milliseconds(200)))
    #expect(try await !queue.isCancelled(token: "a", again: true))
    for index in 0..<3 where index != leader { servers.signal(index, SIGSTOP) }
    #expect(try await !queue.isCancelled(token: "a", again: false))
    await #expect(throws: NATSFailure.self) { try await queue.isCancelled(token: "a", again: true) }
    for index in 0..<3 where index != leader { servers.signal(index, SIGCONT) }
    try await eventually { (try? await queue.isCancelled(token: "a", again: true)) == false }
    await queue.engine.close()
    await first.close()
  }

  @Test func shutdownNeedsNoServer() async throws {
    let servers = try await TestServers.start(1)
    let cluster = try await Cluster.connect(servers: servers.addresses, replicas: 1)
    let queue = ClusterQueue<Int>(label: "alone", on: cluster)
    let log = Log<Int>()
    _ = try await queue.handle { log.append($0) }
    try await queue.async(1)
    await log.until(1)
    servers.stop()
    await cluster.shutdown()
    await #expect(throws: ClusterError.closed) { try await queue.async(2) }
  }
}
