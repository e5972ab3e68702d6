internal import Concourse
internal import Synchronization

/// What a delivery needs of its queue.
protocol NATSDeliveryQueue: AnyObject, Sendable {
  /// How long the servers wait for a sign of life.
  var patience: Duration { get }
  /// How long ids are kept.
  var idsAreKept: Duration { get }
  /// What the workers of this connection have and had.
  var held: NATSHeldItems { get }
  /// Sends the text to the servers, and calls `done` once, with their answer or with the reason why there is none.
  /// - Parameter end: It is not sent later than that.
  func tell(
    _ subject: String, _ text: String, before end: ContinuousClock.Instant,
    _ done: @escaping NATSConnection.Done)
  /// Sends the acknowledgement of the item in that place, and calls `done` once, when the servers have it or when it has
  /// to be repeated.
  /// - Parameter end: It is not sent later than that.
  func acknowledge(
    _ subject: String, at place: UInt64, before end: ContinuousClock.Instant,
    _ done: @escaping NATSConnection.Done)
  /// Whether the item of that token is the one of its id that counts.
  func isFirst(_ id: String, token: String) async throws -> Bool
  /// Whether the item of that token was cancelled.
  /// - Parameter again: Whether it may have started before, or has waited for others.
  func isCancelled(token: String, again: Bool) async throws -> Bool
  /// Whether items may start.
  var isOpen: Bool { get }
  /// Stores the item among the failed ones.
  func bury(_ message: NATSMessage, _ item: NATSItem, reason: String, attempts: Int) async throws
  /// Whether each item may have to wait for others.
  var hasBarriers: Bool { get }
  /// Waits until the order of an item lets it start. `waits` is called if that is not at once.
  func turn(of delivery: NATSDelivery, unless isCancelled: @escaping @Sendable () -> Bool, waits: () -> Void)
    async throws -> NATSTurn
  /// Counts a start of the item in that place of the stream, and returns which one it is.
  func countStart(at place: UInt64) async throws -> Int
  func forgetStarts(at place: UInt64) async
  /// Removes the item in that place from the stream.
  func remove(at place: UInt64) async throws
  /// The item does not run any more.
  func hasEnded(_ message: NATSMessage)
  /// Stores what became of an item.
  func keep(_ outcome: ItemOutcome, of message: NATSMessage) async throws
  /// Tells a caller that waits now what became of its item.
  func announce(_ outcome: ItemOutcome, of message: NATSMessage)
}

extension NATSDeliveryQueue {
  func acknowledge(
    _ subject: String, at place: UInt64, before end: ContinuousClock.Instant,
    _ done: @escaping NATSConnection.Done
  ) {
    tell(subject, NATSDelivery.acknowledgement, before: end, done)
  }
}

/// An item that the servers gave to this worker until `end`, which beats put off.
///
/// The servers would take an acknowledgement that comes later, while another worker has the item. So none is sent after
/// `end`, also if it has to wait for its sending: the time that this worker assumes ends earlier than the servers',
/// since it begins with the sending of a beat, theirs with its arrival. Only that of the first delivery begins later, by
/// the way of the item to this process. If the process was stopped meanwhile, it begins before that (`NATSPulse`).
///
/// While the connection is lost nothing is sent, and nothing is kept to be sent later (`NATSConnection.publish`).
final class NATSDelivery: Delivery {
  private struct State {
    /// Where the servers expect the answer. That of the last delivery, if the item was delivered again.
    var subject: String
    /// The place of that delivery.
    var place: UInt64
    /// The same of other places. A repeated submission may be stored twice.
    var copies: [UInt64: String] = [:]
    var attempt: Int
    /// Which start of the item it is, if the engine counts these.
    var start: Int?
    var end: ContinuousClock.Instant
    /// The item is being given back. Its next delivery is another one's, which a beat of this one must not prolong.
    var isLeaving = false
  }

  /// What became of a text to the servers.
  private enum Outcome {
    case answered
    /// No server has it, so it may be sent again.
    case notSent
    /// The servers may have acted upon it.
    case unknown
  }

  static let acknowledgement = "+ACK"
  private static let giveBack = "-NAK"

  var bytes: [UInt8] { message.bytes }
  let item: NATSItem
  let message: NATSMessage
  /// Where the stream has the item. In one stream, an earlier item has an earlier place.
  let place: UInt64
  /// The same and that of all copies that were delivered here, the first one first.
  var places: [UInt64] { state.withLock { [$0.place] + $0.copies.keys }.sorted() }
  private var token: String? { message.token }
  /// When the servers stored the item.
  private let stored: WallTime
  private let queue: any NATSDeliveryQueue
  private let state: Mutex<State>

  /// - Parameter start: When the servers may have given it out.
  /// - Returns: `nil` if the message is no item.
  init?(
    _ message: NATSMessage, of queue: any NATSDeliveryQueue, since start: ContinuousClock.Instant = .now
  ) {
    // "$JS.ACK", then two more parts in a server with domains, stream, consumer, attempt, number, the delivery's
    // number, time, …
    guard let subject = message.reply, subject.hasPrefix("$JS.ACK.") else { return nil }
    let numbers = Self.numbers(in: subject)
    let first = numbers.count >= 11 ? 6 : 4
    guard numbers.count >= 9, let attempt = numbers[first], let place = numbers[first + 1],
      let time = numbers[first + 3]
    else { return nil }
    self.message = message
    self.place = place
    // An item of a foreign program has no id.
    item = NATSItem(id: message.id ?? "at-\(place)", time: time)
    stored = WallTime(nanoseconds: Int64(clamping: time))
    self.queue = queue
    hasOrder = message.order != nil || queue.hasBarriers
    state = Mutex(
      State(subject: subject, place: place, attempt: Int(clamping: attempt), end: start + queue.patience))
  }

  /// What the parts of a subject say that consist of digits.
  private static func numbers(in subject: String) -> [UInt64?] {
    var numbers: [UInt64?] = []
    numbers.reserveCapacity(12)
    var number: UInt64? = 0
    for byte in subject.utf8 {
      switch byte {
      case UInt8(ascii: "."):
        numbers.append(number)
        number = 0
      case UInt8(ascii: "0")...UInt8(ascii: "9"): number = number.map { $0 &* 10 &+ UInt64(byte & 15) }
      default: number = nil
      }
    }
    return numbers + [number]
  }

  /// That of the last delivery of the item, or the number of the start if those are counted.
  var attempt: Int { state.withLock { $0.start ?? $0.attempt } }
  var beatInterval: Duration? { queue.patience / 3 }

  /// Whether the item may have to wait for others.
  private let hasOrder: Bool

  /// Whether the servers may have given the item to another worker.
  var isLost: Bool { state.withLock { $0.end <= .now } }

  /// Takes over a later delivery of the same item, unless that one follows from the return of this one.
  /// - Returns: Whether this delivery stands for both.
  func absorbs(_ later: NATSDelivery) -> Bool {
    let (subject, place, attempt, end) = later.state.withLock {
      ($0.subject, $0.place, $0.attempt, $0.end)
    }
    return state.withLock { state in
      if state.isLeaving { return attempt <= state.attempt }
      state.copies[state.place] = state.subject
      state.copies[place] = nil
      (state.subject, state.place) = (subject, place)
      state.attempt = max(state.attempt, attempt)
      state.end = max(state.end, end)
      return true
    }
  }

  func begin(unless isCancelled: @escaping @Sendable () -> Bool, in workersPlace: some DeliveryPlace) async
    -> Bool
  {
    var hasTurn = !hasOrder
    // Whether the item has left its place, and whether it ever had.
    let waiting = Mutex((hasLeft: false, hasWaited: false))
    while !queue.held.leaveIfLost(self) {
      guard queue.isOpen else {
        if isCancelled() {
          await again(after: .zero)
          return false
        }
        try? await Task.sleep(for: .milliseconds(100))
        continue
      }
      do {
        if let token, try await !counts(token) {
          await finish()
          return false
        }
        if !hasTurn {
          switch try await queue.turn(
            of: self, unless: isCancelled,
            waits: {
              waiting.withLock { $0 = (true, true) }
              workersPlace.leave()
            })
          {
          case .first: hasTurn = true
          // Another worker has finished it, or it was cancelled.
          case .gone:
            await finish()
            return false
          // If it has been delivered here again meanwhile, it waits on, still without a place.
          case .lost: continue
          case .cancelled:
            await again(after: .zero)
            return false
          }
          if waiting.withLock({ $0.hasLeft }) {
            await workersPlace.take()
            waiting.withLock { $0.hasLeft = false }
            // The item may have been lost meanwhile.
            continue
          }
        }
        // After its turn has come: until then, `cancel` may promise that it does not start.
        if let token {
          let again = state.withLock { $0.attempt } > 1 || waiting.withLock { $0.hasWaited }
          if try await queue.isCancelled(token: token, again: again) {
            if wantsResult { try await keepEnd(.cancelled) }
            await finish()
            return false
          }
        }
        // The queue may have been suspended meanwhile.
        guard queue.isOpen else { continue }
        try await countStart()
        return !queue.held.leaveIfLost(self)
      } catch {
        try? await Task.sleep(for: .milliseconds(100))
      }
    }
    return false
  }

  /// Items with an order are delivered while they wait, and again if the worker dies meanwhile. So deliveries beyond the
  /// first are no starts, and those are counted.
  private func countStart() async throws {
    guard hasOrder, state.withLock({ $0.attempt > 1 && $0.start == nil }) else { return }
    let start = try await queue.countStart(at: place)
    state.withLock { $0.start = start }
  }

  /// The item does not start again.
  private func hasEnded() async {
    if state.withLock({ $0.start }) != nil { await queue.forgetStarts(at: place) }
    queue.hasEnded(message)
  }

  /// Whether the item is the one of its id that counts.
  private func counts(_ token: String) async throws -> Bool {
    // An item that has waited for long counts: its id may be another item's by now.
    guard .now - stored < queue.idsAreKept else { return true }
    return try await queue.isFirst(item.id, token: token)
  }

  func beat() { send("+WPI") { _ in } }

  var wantsResult: Bool { message.wantsResult }

  /// The result is stored before the acknowledgement. If the worker dies between both, the item runs again, and the
  /// first result counts.
  func finish(returning result: [UInt8]?, _ ended: @escaping @Sendable () -> Void) async throws {
    if wantsResult {
      do {
        try await queue.keep(.result(result), of: message)
      } catch ClusterError.tooLarge(_, let bytes, let limit) {
        throw NoAttemptHelps(reason: "its result has \(bytes) bytes; the most is \(limit)")
      } catch {
        // Without the result, the item counts as not run.
        let failure = ResultNotKept(reason: "\(error)")
        throw Self.isRefused(error) ? NoAttemptHelps(reason: failure.description) : failure
      }
    }
    if hasOrder {
      await finish()
      return ended()
    }
    // No task waits for the answer.
    queue.held.finish(item)
    repeatUntilAnswered(Self.acknowledgement, mayShare: true) { [self] in
      queue.hasEnded(message)
      ended()
    }
  }

  /// Also a worker that has lost the item remembers that it has run: if the item comes here again, its run counts.
  func finish() async {
    queue.held.finish(item)
    await untilRemoved()
    await untilAnswered(Self.acknowledgement)
    await hasEnded()
  }

  /// The request is not repeated if a server may have it: by then another worker may have the item, and would lose it.
  /// If the request is lost, the item is delivered again after the patience. So it is close to the deadline, when nothing is
  /// sent (`send`).
  func again(after delay: Duration) async {
    state.withLock { $0.isLeaving = true }
    let text = Self.giveBack + (delay > .zero ? " {\"delay\": \(delay.forServers)}" : "")
    while await tell(text) == .notSent { try? await Task.sleep(for: .milliseconds(100)) }
    queue.held.leave(self)
  }

  /// Whether servers that answer do not take it, as when a stream is full.
  private static func isRefused(_ error: any Error) -> Bool {
    if let refusal = error as? NATSRefusal { return !refusal.isPassing }
    return false
  }

  /// Keeps an end without a result. If the servers refuse to keep even that, the item ends all the same.
  private func keepEnd(_ outcome: ItemOutcome) async throws {
    do {
      try await queue.keep(outcome, of: message)
    } catch  where Self.isRefused(error) {
      queue.announce(outcome, of: message)
    }
  }

  func bury(reason: String) async -> Bool {
    do {
      try await queue.bury(message, item, reason: reason, attempts: attempt)
      if wantsResult { try await keepEnd(.failed(reason: reason, attempts: attempt)) }
      queue.held.finish(item)
      await untilRemoved()
      await untilAnswered("+TERM")
      await hasEnded()
      return true
    } catch {
      // The next delivery comes here again: it exceeds the attempts, or cannot be decoded.
      await again(after: .seconds(1))
      return false
    }
  }

  /// Removes an item with an order, so that its successors may start (`NATSLine.swift`).
  private func untilRemoved() async {
    while hasOrder, !isLost {
      do {
        for place in places { try await queue.remove(at: place) }
        return
      } catch {
        try? await Task.sleep(for: .milliseconds(100))
      }
    }
  }

  private func untilAnswered(_ text: String) async {
    await withCheckedContinuation { continuation in repeatUntilAnswered(text) { continuation.resume() } }
  }

  /// Repeats it until the servers have answered, as long as this worker has the item.
  /// - Parameter mayShare: Whether the answer may be one to many acknowledgements. That to a repetition is not.
  private func repeatUntilAnswered(
    _ text: String, mayShare: Bool = false, _ done: @escaping @Sendable () -> Void
  ) {
    send(text, mayShare: mayShare) { [self] outcome in
      if outcome == .answered || isLost { return done() }
      DispatchQueue.global(qos: .userInitiated).asyncAfter(deadline: .now() + .milliseconds(100)) {
        self.repeatUntilAnswered(text, done)
      }
    }
  }

  private func tell(_ text: String) async -> Outcome {
    await withCheckedContinuation { continuation in send(text) { continuation.resume(returning: $0) } }
  }

  /// The servers are not asked once the item is lost: a beat would count for the worker that has it now, and would be
  /// taken for a new deadline here. What waits for its sending until then is not sent.
  ///
  /// A return that arrives after the servers' deadline takes the item from the worker that has it by then, and a third one
  /// gets it beside that. A return that is not sent costs only time. So its deadline is earlier, by longer than the way.
  private func send(_ text: String, mayShare: Bool = false, _ done: @escaping @Sendable (Outcome) -> Void) {
    let start = ContinuousClock.now
    let (subject, place, copies, end) = state.withLock {
      state -> (String?, UInt64, [String], ContinuousClock.Instant) in
      let end = text.hasPrefix(Self.giveBack) ? state.end - queue.patience / 10 : state.end
      guard end > start, !(state.isLeaving && text == "+WPI") else { return (nil, 0, [], end) }
      return (state.subject, state.place, Array(state.copies.values), end)
    }
    guard let subject else { return done(.unknown) }
    for copy in copies { queue.tell(copy, text, before: end) { _ in } }
    let answer: NATSConnection.Done = { [self] result in
      switch result {
      case .success:
        state.withLock { $0.end = max($0.end, start + queue.patience) }
        done(.answered)
      case .failure(NATSFailure.notConnected), .failure(NATSFailure.late), .failure(NATSFailure.noResponders):
        done(.notSent)
      case .failure(NATSFailure.closed):
        state.withLock { $0.end = start }
        done(.unknown)
      case .failure: done(.unknown)
      }
    }
    if mayShare {
      queue.acknowledge(subject, at: place, before: end, answer)
    } else {
      queue.tell(subject, text, before: end, answer)
    }
  }
}
