import Testing

@testable import ConcourseCluster

/// A registration, with an engine that gives it what the test wants.
@Suite(.timeLimit(.minutes(3))) struct RegistrationTests {
  private final class Item: Delivery {
    let bytes: [UInt8] = []
    let attempt: Int
    let beatInterval: Duration? = nil
    let wantsResult = false
    /// Called with how it ends.
    private let ends: @Sendable (String) -> Void
    private let destroyed: @Sendable () -> Void

    init(
      attempt: Int = 1, ends: @escaping @Sendable (String) -> Void = { _ in },
      destroyed: @escaping @Sendable () -> Void = {}
    ) {
      (self.attempt, self.ends, self.destroyed) = (attempt, ends, destroyed)
    }

    deinit { destroyed() }

    func begin(unless isCancelled: @escaping @Sendable () -> Bool, in place: some DeliveryPlace) async -> Bool
    {
      true
    }
    func beat() {}
    func finish(returning result: [UInt8]?, _ ended: @escaping @Sendable () -> Void) async {
      ends("finish")
      ended()
    }
    func again(after delay: Duration) async { ends("again") }
    func bury(reason: String) async -> Bool {
      ends("bury")
      return true
    }
  }

  private final class Queue: EngineQueue, DeliverySource {
    private let receivers = Log<@Sendable (any Delivery) -> Void>()

    func give(_ item: Item) { receivers.all[0](item) }

    func deliveries(to receive: @escaping @Sendable (any Delivery) -> Void) async throws -> any DeliverySource
    {
      receivers.append(receive)
      return self
    }

    func request(_ count: Int) {}
    func cancel(_ ended: @escaping @Sendable () -> Void) { ended() }

    // The tests of registrations need nothing else.
    private let unused = Failed("not here")
    func store(_ item: NewItem) async throws -> ClusterSubmission { throw unused }
    func run(_ item: NewItem) async throws -> ItemOutcome { throw unused }
    func finished(_ group: String) async throws { throw unused }
    func pendingCount() async throws -> Int { throw unused }
    func failures(after number: UInt64, atMost count: Int) async throws -> [StoredFailure] { throw unused }
    func putBack(_ number: UInt64) async throws { throw unused }
    func discard(_ number: UInt64) async throws { throw unused }
    func cancel(id: String) async throws -> ClusterCancellation { throw unused }
    func isSuspended() async throws -> Bool { throw unused }
    func setSuspended(_ isSuspended: Bool) async throws { throw unused }
  }

  private let cluster = Cluster.embedded()
  private let queue = Queue()

  private func registration(_ label: String, handler: @escaping @Sendable () throws -> Void) async throws
    -> ClusterRegistration
  {
    var options = ClusterQueueOptions()
    options.attempts = 2
    let registration = ClusterRegistration(
      settings: QueueSettings(label: label, attributes: .concurrent, options: options), qos: .default,
      width: 1,
      cluster: cluster
    ) { _, _ in
      try handler()
      return nil
    }
    try await registration.start(on: queue)
    return registration
  }

  /// It may be large, and no other item may come for long.
  @Test func itemIsReleasedWhenItHasEnded() async throws {
    let registration = try await registration("released") {}
    let destroyed = Log<Bool>()
    queue.give(Item(destroyed: { destroyed.append(true) }))
    await destroyed.until(1)
    registration.cancel()
    await registration.drained()
  }

  /// An engine may say that an item has ended before it returns, and `drained` returns then.
  @Test func itemDoesNotCountAsRunningWhenItsHandlerHasEnded() async throws {
    let fails = Log<Bool>()
    let registration = try await registration("figures") {
      if !fails.all.isEmpty { throw Failed("it has to") }
    }
    let figures = cluster.figures(of: "figures")
    let log = Log<String>()
    for (attempt, count) in [(1, 1), (1, 2), (2, 3)] {
      queue.give(Item(attempt: attempt, ends: { log.append("\($0) \(figures.counts.running)") }))
      await log.until(count)
      fails.append(true)
    }
    #expect(log.all == ["finish 0", "again 0", "bury 0"])
    registration.cancel()
    await registration.drained()
  }
}
