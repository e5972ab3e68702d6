internal import Synchronization

// Items that wait for their time.
//
// Such an item is in a stream of its own, with its time in a header. The processes that offer to work share a consumer
// of that stream. A process that gets the item before its time returns it with the delay that is left, and the servers
// deliver it again then: they replicate the delay, so each server that becomes the leader knows it. If they lose it, the
// item comes early, and is returned once more. The header keeps an item from starting early; the delay saves looking at
// it meanwhile.
//
// A process that gets the item when it is due stores it in the queue, and then acknowledges it. Between both the process
// or a server may die, and the item is moved again. So the move is a submission with an id (`NATSQueue+Ids.swift`),
// and the item of a second move is not stored, or dropped by the workers of the queue.

/// Moves items that are due into their queue, as long as the registration lasts that owns it.
final class NATSMover: NATSDeliveryQueue, DeliveryPlace {
  private struct State {
    /// Items that this mover has got and not ended.
    var running = 0
    var sourceHasEnded = false
    var ended: (@Sendable () -> Void)?
  }

  /// How many items it looks at at the same time.
  private static let width = 100

  let held = NATSHeldItems()
  private let queue: NATSQueue
  private let state = Mutex(State())
  /// Kept until its end.
  private let source = Mutex<NATSSource?>(nil)

  init(for queue: NATSQueue) { self.queue = queue }

  func start() throws {
    let source = try NATSSource(
      of: self, stream: queue.names.laterStream, consumer: queue.names.consumer, on: queue.connection
    ) { delivery in
      self.state.withLock { $0.running += 1 }
      Task {
        await self.look(at: delivery)
        self.hasEnded()
      }
    }
    self.source.withLock { $0 = source }
    source.request(Self.width)
  }

  /// - Parameter ended: Called once, after the last item.
  func cancel(_ ended: @escaping @Sendable () -> Void) {
    state.withLock { $0.ended = ended }
    let source = source.withLock { source in
      defer { source = nil }
      return source
    }
    guard let source else { return sourceHasEnded() }
    source.cancel(sourceHasEnded)
  }

  @Sendable private func sourceHasEnded() {
    state.withLock { state -> (@Sendable () -> Void)? in
      state.sourceHasEnded = true
      return Self.end(of: &state)
    }?()
  }

  private func hasEnded() {
    state.withLock { state -> (@Sendable () -> Void)? in
      state.running -= 1
      return Self.end(of: &state)
    }?()
    source.withLock { $0 }?.request(1)
  }

  private static func end(of state: inout State) -> (@Sendable () -> Void)? {
    guard state.sourceHasEnded, state.running == 0 else { return nil }
    defer { state.ended = nil }
    return state.ended
  }

  private func look(at delivery: NATSDelivery) async {
    // The claim for its id is looked at early: when the item is due it may be forgotten.
    guard await delivery.begin(unless: { false }, in: self) else { return }
    if let due = delivery.message.due, due > .now { return await delivery.again(after: due - .now) }
    do {
      try await queue.move(delivery)
      await delivery.finish()
    } catch {
      // The queue may have it now. The next move finds that out.
      await delivery.again(after: .seconds(1))
    }
  }

  // MARK: What deliveries need

  /// Not that of the queue, which may be as long as its longest items: looking at one takes a moment.
  var patience: Duration { queue.patienceOfMovers }
  var idsAreKept: Duration { queue.idsAreKept }

  func tell(
    _ subject: String, _ text: String, before end: ContinuousClock.Instant,
    _ done: @escaping NATSConnection.Done
  ) {
    queue.tell(subject, text, before: end, done)
  }

  func isFirst(_ key: String, token: String) async throws -> Bool {
    try await queue.isFirst(key, token: token)
  }

  func bury(_ message: NATSMessage, _ item: NATSItem, reason: String, attempts: Int) async throws {
    try await queue.bury(message, item, reason: reason, attempts: attempts)
  }

  /// What is due joins the queue, suspended or not.
  var isOpen: Bool { true }

  /// The move asks that.
  func isCancelled(token: String, again: Bool) async throws -> Bool { false }

  // No item waits for others here.
  func leave() {}
  func take() async {}

  /// Moving is no start.
  var hasBarriers: Bool { false }
  func turn(of delivery: NATSDelivery, unless isCancelled: @escaping @Sendable () -> Bool, waits: () -> Void)
    async throws -> NATSTurn
  { .first }
  func countStart(at place: UInt64) async throws -> Int { 1 }
  func forgetStarts(at place: UInt64) async {}
  func remove(at place: UInt64) async throws {}

  /// It has only moved.
  func hasEnded(_ message: NATSMessage) {}

  func keep(_ outcome: ItemOutcome, of message: NATSMessage) async throws {
    try await queue.keep(outcome, of: message)
  }

  func announce(_ outcome: ItemOutcome, of message: NATSMessage) { queue.announce(outcome, of: message) }
}

/// A registration as the servers see it: it takes items of the queue, and moves those that are due into it.
final class NATSWorker: DeliverySource {
  private let items: NATSSource
  private let mover: NATSMover
  private let gate: NATSGate
  private let place: Int

  init(of queue: NATSQueue, _ receive: @escaping @Sendable (any Delivery) -> Void) async throws {
    mover = NATSMover(for: queue)
    gate = queue.gate
    let items = try NATSSource(
      of: queue, stream: queue.names.stream, consumer: queue.names.consumer, on: queue.connection, receive)
    self.items = items
    do {
      place = try await gate.add(for: queue) { items.ask() }
    } catch {
      items.cancel {}
      throw error
    }
    do {
      try mover.start()
    } catch {
      items.cancel {}
      throw error
    }
  }

  /// The registration keeps it until its last item has ended: items that have arrived still ask the gate.
  deinit { gate.remove(place) }

  func request(_ count: Int) { items.request(count) }

  func cancel(_ ended: @escaping @Sendable () -> Void) {
    let rest = Mutex(2)
    let one: @Sendable () -> Void = {
      let isLast = rest.withLock { rest in
        rest -= 1
        return rest == 0
      }
      if isLast { ended() }
    }
    items.cancel(one)
    mover.cancel(one)
  }
}
