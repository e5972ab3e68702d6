import Glibc
import Synchronization
import Testing

@testable import ConcourseCluster

/// Acknowledgements in batches: what is confirmed, and what is repeated.
@Suite(.timeLimit(.minutes(10))) struct AcknowledgementTests {
  /// A batch whose acknowledgements say what became of them.
  private final class Batch {
    var unconfirmed = NATSUnconfirmed()
    let outcomes = Log<String>()
    let start = ContinuousClock.now

    func add(_ places: ClosedRange<UInt64>) -> [Bool] {
      places.map { place in
        unconfirmed.add(place) { [outcomes] result in
          if case .success = result { outcomes.append("\(place)") } else { outcomes.append("again \(place)") }
        }
      }
    }

    func takes(at time: ContinuousClock.Instant) -> Bool { unconfirmed.belongsToBatch(at: time) }

    /// - Returns: Whether another question is needed.
    func ask(floor: UInt64?) -> Bool {
      unconfirmed.ask()
      return answer(floor: floor)
    }

    func answer(floor: UInt64?) -> Bool {
      let (confirmed, others, goesOn) = unconfirmed.answer(floor: floor, at: start)
      for done in confirmed { done(.success(NATSMessage(subject: "", reply: nil, bytes: []))) }
      for done in others { done(.failure(NATSFailure.unconfirmed)) }
      return goesOn
    }
  }

  @Test func oneAnswerConfirmsAllUpToTheFloor() {
    let batch = Batch()
    #expect(batch.add(1...3) == [true, false, false])
    #expect(batch.ask(floor: 2))
    #expect(batch.outcomes.all == ["1", "2"])
    #expect(batch.add(4...4) == [false])
    #expect(!batch.ask(floor: 9))
    #expect(batch.outcomes.all == ["1", "2", "3", "4"])
    #expect(batch.add(5...5) == [true])
  }

  /// The servers do not have one of them, or the item before it runs for long.
  @Test func whatQuestionsDoNotConfirmIsRepeated() {
    let batch = Batch()
    _ = batch.add(1...4)
    // It was sent after the question, so this answer is none to it.
    batch.unconfirmed.ask()
    _ = batch.add(5...5)
    #expect(batch.answer(floor: 2))
    for _ in 2...NATSUnconfirmed.questions { #expect(batch.ask(floor: 2)) }
    #expect(batch.outcomes.all == ["1", "2", "again 3", "again 4"])
    #expect(!batch.ask(floor: 2))
    #expect(batch.outcomes.all.last == "again 5")
  }

  @Test func withoutAnAnswerAllAreRepeated() {
    let batch = Batch()
    _ = batch.add(1...2)
    #expect(!batch.ask(floor: nil))
    #expect(batch.outcomes.all == ["again 1", "again 2"])
  }

  @Test func eachIsARequestWhileTheFloorStays() {
    let batch = Batch()
    let start = batch.start
    // One that is alone is, too.
    #expect(!batch.takes(at: start))
    #expect(batch.takes(at: start))
    batch.unconfirmed.requests -= 1
    _ = batch.add(1...2)
    #expect(batch.takes(at: start))
    #expect(!batch.ask(floor: nil))
    #expect(!batch.takes(at: start))
    #expect(!batch.takes(at: start))
    batch.unconfirmed.requests -= 1
    #expect(batch.takes(at: start + NATSUnconfirmed.memory))
  }

  /// An item that runs keeps the consumer's floor below those that have ended behind it.
  @Test func itemsEndBesideOneThatRunsForLong() async throws {
    let cluster = try await EngineKind.servers.cluster()
    let queue = ClusterQueue<Int>(label: EngineKind.servers.label(), attributes: .concurrent, on: cluster)
    for item in 0..<300 { try await queue.async(item) }
    let (gate, log) = (Gate(), Log<Int>())
    let registration = try await queue.handle(width: 8) { item in
      if item == 0 { await gate.pass() }
      log.append(item)
    }
    #expect(Set(await log.until(299)) == Set(1..<300))
    try await eventually { try await queue.pendingCount() == 1 }
    // The others have ended here, too: their answers do not wait for the floor.
    try await eventually { registration.heldCount == 1 }
    gate.open()
    try await eventually { try await queue.pendingCount() == 0 }
    registration.cancel()
    await registration.drained()
    #expect(log.all.count == 300)
    await cluster.shutdown()
  }

  /// Requests of many tasks are handed to the library by one of them.
  @Test func requestsOfManyTasksGetTheirOwnAnswers() async throws {
    let engine = try await NATSEngine.connect(
      servers: TestServers.shared.value.addresses, credentials: .none, replicas: 1, timeout: .seconds(300))
    let subject = NATSConnection.newInbox()
    let subscription = try engine.connection.subscribe(subject) { message in
      try? engine.connection.publish(message.reply!, message.bytes)
    }
    let sent = Log<Bool>()
    try await withThrowingTaskGroup(of: Bool.self) { group in
      for number in 0..<1_000 {
        let bytes = Array("\(number)".utf8)
        group.addTask { try await engine.connection.request(subject, bytes).bytes == bytes }
        engine.connection.send(subject + ".alone", bytes, before: .now + .seconds(300)) { failure in
          sent.append(failure == nil)
        }
      }
      for try await isOwn in group { #expect(isOwn) }
    }
    #expect(await sent.until(1_000).allSatisfy { $0 })
    subscription.drain()
    await engine.close()
    // Nothing is sent any more, and that is said.
    engine.connection.send(subject, [], before: .now + .seconds(300)) { failure in
      sent.append(failure == nil)
    }
    #expect(sent.all.last == false)
  }

  @Test func whatIsPastItsDeadlineIsNotSent() async throws {
    let engine = try await NATSEngine.connect(
      servers: TestServers.shared.value.addresses, credentials: .none, replicas: 1, timeout: .seconds(300))
    let subject = NATSConnection.newInbox()
    let (came, failures) = (Log<[UInt8]>(), Log<String>())
    let subscription = try engine.connection.subscribe(subject) { message in came.append(message.bytes) }
    let now = ContinuousClock.now
    engine.connection.send(subject, [1], before: now) { failure in failures.append("\(failure as Any)") }
    engine.connection.request(subject, [2], within: .seconds(60), before: now) { result in
      failures.append("\(result)")
    }
    #expect(await failures.until(2).allSatisfy { $0.contains("\(NATSFailure.late)") })
    // Messages come in the order in which they were sent.
    engine.connection.send(subject, [3], before: now + .seconds(300)) { _ in }
    #expect(await came.until(1) == [[3]])
    subscription.drain()
    await engine.close()
  }

  /// It may be the thread of a beat or of a handler, which has more to do.
  @Test func threadThatSendsGoesOnWhileMoreComes() async throws {
    let engine = try await NATSEngine.connect(
      servers: TestServers.shared.value.addresses, credentials: .none, replicas: 1, timeout: .seconds(300))
    let chain = Chain(on: engine.connection)
    chain.sendNext()
    chain.sends.withLock { $0 = false }
    #expect(await chain.hasStopped.until(1) == [true])
    await engine.close()
  }

  /// Messages of which each one, once it is sent, is followed by another.
  private final class Chain: Sendable {
    let sends = Mutex(true)
    /// Whether it has ended in time.
    let hasStopped = Log<Bool>()
    private let connection: NATSConnection
    private let subject = NATSConnection.newInbox()
    private let end = ContinuousClock.now + .seconds(60)

    init(on connection: NATSConnection) { self.connection = connection }

    func sendNext() {
      connection.send(subject, [], before: .now + .seconds(300)) { [self] _ in
        // A guard against a hang.
        if .now > end { return hasStopped.append(false) }
        if sends.withLock({ $0 }) { sendNext() } else { hasStopped.append(true) }
      }
    }
  }

  /// A runner that takes an item makes another one for the next item first.
  @Test(arguments: EngineKind.allCases) func itemsThatBlockTheirThreadsRunBesideEachOther(on kind: EngineKind)
    async throws
  {
    let cluster = try await kind.cluster()
    let queue = ClusterQueue<Int>(label: kind.label(), attributes: .concurrent, on: cluster)
    let gauge = Gauge()
    _ = try await queue.handle(width: 4) { item in
      if item < 100 { return }
      gauge.enter()
      while gauge.most < 4 { usleep(1_000) }
      gauge.leave()
    }
    // Short ones go before, and more than a runner takes in a row.
    for item in 0..<104 { try await queue.async(item) }
    try await eventually { try await queue.pendingCount() == 0 }
    #expect(gauge.most == 4)
    await cluster.shutdown()
  }
}
