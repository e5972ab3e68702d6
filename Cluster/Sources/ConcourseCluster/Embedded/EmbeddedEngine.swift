internal import Concourse
internal import Synchronization

/// The engine without a server: all queues are in the memory of this process.
final class EmbeddedEngine: Engine {
  private struct State {
    var queues: [String: EmbeddedQueue] = [:]
    var isClosed = false
  }

  private let state = Mutex(State())

  func open(_ settings: QueueSettings) async throws -> any EngineQueue {
    try state.withLock { state throws in
      if state.isClosed { throw ClusterError.closed }
      // The cluster opens a label once, so the settings cannot differ.
      if let queue = state.queues[settings.label] { return queue }
      let queue = EmbeddedQueue(settings)
      state.queues[settings.label] = queue
      return queue
    }
  }

  func close() async {
    let queues = state.withLock { state in
      state.isClosed = true
      return Array(state.queues.values)
    }
    for queue in queues { queue.close() }
  }
}

/// A queue of the engine in memory. `EmbeddedState` decides, this class acts after unlocking.
final class EmbeddedQueue: EngineQueue {
  /// As many bytes as a server of NATS takes by default, less the room for headers.
  static let largestItem = 1_048_576 - 8_192

  private let settings: QueueSettings
  private let state: Mutex<EmbeddedState>

  init(_ settings: QueueSettings) {
    self.settings = settings
    state = Mutex(EmbeddedState(settings))
  }

  func store(_ item: NewItem) async throws -> ClusterSubmission { try await add(item).0 }

  private func add(_ item: NewItem) async throws -> (ClusterSubmission, number: UInt64) {
    guard item.bytes.count <= Self.largestItem else {
      throw ClusterError.tooLarge(queue: settings.label, bytes: item.bytes.count, limit: Self.largestItem)
    }
    let (submission, number) = try state.withLock { state throws in try state.store(item, at: .now) }
    if let due = item.due, submission == .stored {
      DispatchQueue.global().asyncAfter(wallDeadline: due.asDeadline) { [weak self] in
        guard let self else { return }
        state.withLock { state in state.isDue(number) }
        deliver()
      }
    }
    deliver()
    return (submission, number)
  }

  func run(_ item: NewItem) async throws -> ItemOutcome {
    let number = try await add(item).number
    let hint = Hint()
    defer { state.withLock { state in state.forget(hint, of: number) } }
    var pauses = Pauses(hint)
    while true {
      if let outcome = try state.withLock({ state throws in try state.outcome(of: number, hint, at: .now) }) {
        return outcome
      }
      try await pauses.wait()
    }
  }

  func finished(_ group: String) async throws {
    let hint = Hint()
    defer { state.withLock { state in state.forget(hint, of: group) } }
    var pauses = Pauses(hint)
    while try !state.withLock({ state throws in try state.isFinished(group, hint) }) {
      try await pauses.wait()
    }
  }

  func deliveries(to receive: @escaping @Sendable (any Delivery) -> Void) async throws -> any DeliverySource {
    let worker = try state.withLock { state throws in try state.addWorker(receive) }
    return EmbeddedSource(queue: self, worker: worker)
  }

  func pendingCount() async throws -> Int { try state.withLock { state throws in try state.pendingCount() } }

  func failures(after number: UInt64, atMost count: Int) async throws -> [StoredFailure] {
    try state.withLock { state throws in try state.failures(after: number, atMost: count) }
  }

  func putBack(_ number: UInt64) async throws {
    try state.withLock { state throws in try state.putBack(number) }
    deliver()
  }

  func discard(_ number: UInt64) async throws {
    _ = try state.withLock { state throws in try state.removeFailure(number) }
  }

  func cancel(id: String) async throws -> ClusterCancellation {
    let (cancellation, hints) = try state.withLock { state throws in try state.cancel(id, at: .now) }
    for hint in hints { hint.give() }
    // Others may have waited for it.
    deliver()
    return cancellation
  }

  func isSuspended() async throws -> Bool { try state.withLock { state throws in try state.suspension() } }

  func setSuspended(_ isSuspended: Bool) async throws {
    try state.withLock { state throws in try state.setSuspended(isSuspended) }
    deliver()
  }

  func close() { state.withLock { state in state.close() } }

  fileprivate func request(_ count: Int, for worker: Int) {
    state.withLock { state in state.allow(count, for: worker) }
    deliver()
  }

  fileprivate func removeWorker(_ worker: Int, _ ended: @escaping @Sendable () -> Void) {
    let hasEnded = state.withLock { state in state.removeWorker(worker, ended) }
    if hasEnded { ended() }
  }

  fileprivate func finish(_ item: EmbeddedState.Item, returning result: [UInt8]?) throws {
    if item.wantsResult, let count = result?.count, count > Self.largestItem {
      throw NoAttemptHelps(reason: "its result has \(count) bytes; the most is \(Self.largestItem)")
    }
    let hints = state.withLock { state in state.finish(item, returning: result, at: .now) }
    for hint in hints { hint.give() }
    deliver()
  }

  fileprivate func again(_ item: EmbeddedState.Item, after delay: Duration) {
    guard delay > .zero else { return giveBack(item) }
    DispatchQueue.global().asyncAfter(deadline: .now() + delay.asInterval) {
      self.giveBack(item)
    }
  }

  private func giveBack(_ item: EmbeddedState.Item) {
    let hints = state.withLock { state in state.giveBack(item, at: .now) }
    for hint in hints { hint.give() }
    deliver()
  }

  fileprivate func bury(_ item: EmbeddedState.Item, reason: String) {
    let hints = state.withLock { state in state.bury(item, reason: reason, at: .now) }
    for hint in hints { hint.give() }
    deliver()
  }

  /// Gives items to workers as long as both are there.
  private func deliver() {
    while let (item, worker, receive) = state.withLock({ state in state.next() }) {
      receive(EmbeddedDelivery(item, of: self))
      state.withLock { state in state.received(worker) }?()
    }
  }
}

private final class EmbeddedSource: DeliverySource {
  private let queue: EmbeddedQueue
  private let worker: Int

  init(queue: EmbeddedQueue, worker: Int) {
    self.queue = queue
    self.worker = worker
  }

  func request(_ count: Int) { queue.request(count, for: worker) }
  func cancel(_ ended: @escaping @Sendable () -> Void) { queue.removeWorker(worker, ended) }
}

/// A worker of the same process cannot be lost, so there are no beats.
private final class EmbeddedDelivery: Delivery {
  private let item: EmbeddedState.Item
  private let queue: EmbeddedQueue

  init(_ item: EmbeddedState.Item, of queue: EmbeddedQueue) {
    self.item = item
    self.queue = queue
  }

  var bytes: [UInt8] { item.bytes }
  var attempt: Int { item.attempt }
  var beatInterval: Duration? { nil }
  func begin(unless isCancelled: @escaping @Sendable () -> Bool, in place: some DeliveryPlace) async -> Bool {
    true
  }
  func beat() {}
  var wantsResult: Bool { item.wantsResult }
  func finish(returning result: [UInt8]?, _ ended: @escaping @Sendable () -> Void) async throws {
    try queue.finish(item, returning: result)
    ended()
  }
  func again(after delay: Duration) async { queue.again(item, after: delay) }
  func bury(reason: String) async -> Bool {
    queue.bury(item, reason: reason)
    return true
  }
}
