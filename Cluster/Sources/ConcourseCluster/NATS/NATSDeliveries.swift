internal import Concourse
internal import Synchronization

/// A worker's side of the consumer: it asks the servers for as many items as the worker allows.
///
/// A request for items ends with them, with a status, or in silence if the consumer's leader was lost. What has not
/// come by then is asked for again. So more items may come than the worker allows; the registration keeps those until
/// it has room.
final class NATSSource: DeliverySource {
  private struct State {
    var isCancelled = false
    var isDraining = false
    /// The subscription is over; no message comes any more.
    var hasEnded = false
    var ended: (@Sendable () -> Void)?
    /// How many items the worker still allows.
    var allowed = 0
    var requests = NATSRequests()
    var pulse: NATSPulse
    var isSweeping = false
    var subscription: NATSSubscription?
  }

  private let queue: any NATSDeliveryQueue
  private let connection: NATSConnection
  /// Where the consumer takes requests.
  private let consumer: String
  private let inbox = NATSConnection.newInbox()
  private let receive: @Sendable (NATSDelivery) -> Void
  private let state: Mutex<State>

  /// - Parameter stream: That of the consumer.
  init(
    of queue: any NATSDeliveryQueue, stream: String, consumer: String, on connection: NATSConnection,
    _ receive: @escaping @Sendable (NATSDelivery) -> Void
  ) throws {
    self.queue = queue
    self.connection = connection
    self.consumer = "$JS.API.CONSUMER.MSG.NEXT.\(stream).\(consumer)"
    self.receive = receive
    state = Mutex(State(pulse: NATSPulse(patience: queue.patience, at: .now)))
    // The subscription keeps this object until its end, since `cancel` waits for that.
    let subscription = try connection.subscribe(inbox + ".*", ended: self.end) { message in
      self.take(message)
    }
    state.withLock { state in if !state.hasEnded { state.subscription = subscription } }
  }

  func request(_ count: Int) {
    let isCancelled = state.withLock { state in
      if !state.isCancelled { state.allowed += count }
      return state.isCancelled
    }
    if !isCancelled { ask() }
  }

  /// The requests that the servers have may bring items until they end. An item that arrived after the cancellation
  /// would count as delivered, and lose an attempt.
  func cancel(_ ended: @escaping @Sendable () -> Void) {
    let hasEnded = state.withLock { state in
      state.isCancelled = true
      state.allowed = 0
      if !state.hasEnded { state.ended = ended }
      return state.hasEnded
    }
    if hasEnded { return ended() }
    sweepLater()
    drainWhenDone()
  }

  private func drainWhenDone() {
    let subscription = state.withLock { state -> NATSSubscription? in
      guard state.isCancelled, state.requests.isEmpty, !state.isDraining else { return nil }
      state.isDraining = true
      return state.subscription
    }
    subscription?.drain()
  }

  private func end() {
    let (ended, subscription) = state.withLock { state in
      state.hasEnded = true
      state.isCancelled = true
      state.isDraining = true
      state.requests = NATSRequests()
      state.allowed = 0
      defer { (state.ended, state.subscription) = (nil, nil) }
      return (state.ended, state.subscription)
    }
    ended?()
    _ = subscription
  }

  private func take(_ message: NATSMessage) {
    let earliest = look()
    if let status = message.status {
      let name = String(message.subject.dropFirst(inbox.count + 1))
      // 404 and 408 say that there was nothing. The others mean trouble, which the next sweep may find gone.
      let isWell = status == "404" || status == "408"
      state.withLock { state in
        state.requests.end(name, missing: message.missing, isWell: isWell)
      }
      if isWell { ask() } else { sweepLater() }
      drainWhenDone()
      return
    }
    guard let delivery = NATSDelivery(message, of: queue, since: earliest) else {
      return state.withLock { $0.pulse.hasReturned(message.subject.dropFirst(inbox.count + 1)) }
    }
    state.withLock { state in state.requests.itemHasCome() }
    switch queue.held.take(delivery) {
    case .new:
      state.withLock { state in state.allowed = max(0, state.allowed - 1) }
      ask()
      receive(delivery)
    case .held: ask()
    case .finished:
      ask()
      Task { await delivery.finish() }
    }
    drainWhenDone()
  }

  /// Asks for what is allowed and was not asked for, once that is at least half of what is allowed. So a busy worker asks
  /// once for many items. As long as an item may come, the next one is a reason to ask again.
  func ask() {
    let request = state.withLock { state -> (name: String, count: Int, patience: Duration)? in
      let missing = state.requests.missing
      let count = state.allowed - missing
      guard count > 0, count >= missing, !state.isCancelled, queue.isOpen else { return nil }
      let (name, patience) = state.requests.add(count, at: .now)
      return (name, count, patience)
    }
    if let request {
      do {
        try connection.publish(
          consumer, encoded(NATSPull(batch: request.count, expires: request.patience.forServers)),
          reply: "\(inbox).\(request.name)")
      } catch {
        // The next sweep asks again.
        state.withLock { state in state.requests.remove(request.name) }
      }
    }
    sweepLater()
  }

  private func sweepLater() {
    let isFirst = state.withLock { state in
      if state.isSweeping || state.isDraining { return false }
      state.isSweeping = true
      state.pulse.begin(at: .now)
      return true
    }
    if isFirst { scheduleSweep() }
  }

  private func scheduleSweep() {
    let interval = state.withLock { $0.pulse.interval }
    DispatchQueue.global(qos: .userInitiated).asyncAfter(deadline: .now() + interval.asInterval) {
      [weak self] in
      self?.sweep()
    }
  }

  /// - Returns: When an item that comes now may have been given out.
  @discardableResult
  private func look() -> ContinuousClock.Instant {
    let now = ContinuousClock.now
    let (name, earliest) = state.withLock { state in
      // What comes although nothing was asked for has found no look before it.
      if !state.isSweeping { state.pulse.begin(at: now) }
      return (state.pulse.look(at: now), state.pulse.earliest(at: now))
    }
    // If it is lost, the next look sends it again.
    if let name { try? connection.publish("\(inbox).\(name)", []) }
    return earliest
  }

  private func sweep() {
    look()
    let now = ContinuousClock.now
    let goesOn = state.withLock { state in
      state.requests.lose(at: now)
      state.isSweeping = !state.requests.isEmpty || state.allowed > 0
      return state.isSweeping
    }
    drainWhenDone()
    if goesOn {
      ask()
      scheduleSweep()
    }
  }
}

/// The requests for items that the servers may have.
///
/// A request is lost without a word while the consumer has no leader, or the servers do not know it yet, which is most
/// likely for the first one of a worker. So requests are short until one is answered, and again after one was lost. When
/// one is repeated, the servers have forgotten it, unless it arrived more than a second late.
struct NATSRequests {
  private struct Request {
    let number: Int
    var name: String { "\(number)" }
    var missing: Int
    let end: ContinuousClock.Instant
  }

  /// How long the servers keep a request, and how long `cancel` may take.
  private static let patience = Duration.seconds(2)
  /// How long the servers keep a request while it is not known that they answer.
  private static let shortPatience = Duration.milliseconds(500)
  /// How much later a request counts as lost.
  private static let delay = Duration.seconds(1)

  private var requests: [Request] = []
  private var last = 0
  /// The last one that counted as lost.
  private var lastLost = 0
  /// Whether the servers have answered since a request was lost.
  private var isHeard = false

  var isEmpty: Bool { requests.isEmpty }
  /// How many items were asked for and have not come.
  var missing: Int { requests.reduce(0) { $0 + $1.missing } }

  /// - Returns: The name of the request, and how long the servers are to keep it.
  mutating func add(_ count: Int, at now: ContinuousClock.Instant) -> (name: String, patience: Duration) {
    last += 1
    let patience = isHeard ? Self.patience : Self.shortPatience
    let request = Request(number: last, missing: count, end: now + patience + Self.delay)
    requests.append(request)
    return (request.name, patience)
  }

  /// It could not be sent.
  mutating func remove(_ name: String) { requests.removeAll { $0.name == name } }

  mutating func itemHasCome() {
    forget(1, of: nil)
    isHeard = true
  }

  /// Forgets what the request that a status ends was for. One that is late must not end a repetition.
  /// - Parameters:
  ///   - missing: How many of its items have not come, if the status says that.
  ///   - isWell: Whether the status says only that there was nothing.
  mutating func end(_ name: String, missing: Int?, isWell: Bool) {
    isHeard = isWell
    let all = requests.first { $0.name == name }?.missing
    if all == nil, let number = Int(name), number <= lastLost { return }
    forget(missing ?? all ?? 0, of: name)
  }

  /// Forgets requests that count as lost.
  mutating func lose(at now: ContinuousClock.Instant) {
    for request in requests where request.end <= now {
      lastLost = max(lastLost, request.number)
      isHeard = false
    }
    requests.removeAll { $0.end <= now }
  }

  /// Forgets as many items that were asked for, first those of the request.
  private mutating func forget(_ count: Int, of name: String?) {
    var count = count
    if let index = requests.firstIndex(where: { $0.name == name }) {
      let taken = min(count, requests[index].missing)
      requests[index].missing -= taken
      count -= taken
    }
    for index in requests.indices where count > 0 {
      let taken = min(count, requests[index].missing)
      requests[index].missing -= taken
      count -= taken
    }
    requests.removeAll { $0.missing == 0 }
  }
}
