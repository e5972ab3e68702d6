internal import Concourse
internal import Synchronization

// Acknowledgements in batches.
//
// The answer to an acknowledgement is one more message for two servers and this process. So where acknowledgements follow
// each other closely they are sent without answers, and one question confirms many: the consumer's floor, up to which every
// item has been acknowledged. For each item, this is as strong as its own answer.
//
// The floor stays below an item that runs for long. An acknowledgement that some questions have not confirmed
// counts as unanswered; its delivery repeats it as a request (`NATSDelivery.repeatUntilAnswered`). While that happens to
// most of them, each is a request from the start.

/// The acknowledgements of a queue that have no answer yet.
final class NATSAcknowledgements: Sendable {
  private let state = Mutex(NATSUnconfirmed())

  /// Between an answer and the next question, which is for all that were sent meanwhile.
  private static let pause = DispatchTimeInterval.milliseconds(10)

  /// Acknowledges an item. `done` is called once: when the servers have it, or when it has to be repeated.
  /// - Parameter end: It is not sent later than that.
  func send(
    _ subject: String, at place: UInt64, before end: ContinuousClock.Instant, on queue: NATSQueue,
    _ done: @escaping NATSConnection.Done
  ) {
    guard state.withLock({ $0.belongsToBatch(at: .now) }) else {
      return queue.tell(subject, NATSDelivery.acknowledgement, before: end) { [self] result in
        state.withLock { $0.requests -= 1 }
        done(result)
      }
    }
    queue.connection.send(subject, Array(NATSDelivery.acknowledgement.utf8), before: end) { [self] failure in
      if let failure { return done(.failure(failure)) }
      let asks = state.withLock { state in state.add(place, done) }
      if asks { ask(queue) }
    }
  }

  private func ask(_ queue: NATSQueue) {
    state.withLock { $0.ask() }
    queue.askForFloor { [self] floor in
      let (confirmed, others, goesOn) = state.withLock { state in state.answer(floor: floor, at: .now) }
      for done in confirmed { done(.success(NATSMessage(subject: "", reply: nil, bytes: []))) }
      for done in others { done(.failure(NATSFailure.unconfirmed)) }
      guard goesOn else { return }
      DispatchQueue.global(qos: .userInitiated).asyncAfter(deadline: .now() + Self.pause) { self.ask(queue) }
    }
  }
}

/// Decides which acknowledgements are confirmed by what the servers say of the floor.
struct NATSUnconfirmed {
  private struct Entry {
    let place: UInt64
    /// The last question that was asked before the acknowledgement was sent.
    let question: Int
    let done: NATSConnection.Done
  }

  /// How many questions may leave an acknowledgement unconfirmed.
  static let questions = 4
  /// How long acknowledgements are requests after the floor has not moved.
  static let memory = Duration.seconds(1)

  /// How many acknowledgements have been sent as requests and have no answer.
  var requests = 0
  private var entries: [Entry] = []
  private var isAsking = false
  private var lastQuestion = 0
  private var noBatchesBefore: ContinuousClock.Instant?

  /// Whether the next acknowledgement is sent without an answer. If not, it counts as a request. One that is alone is a
  /// request: its answer comes sooner.
  mutating func belongsToBatch(at now: ContinuousClock.Instant) -> Bool {
    let isAlone = entries.isEmpty && requests == 0
    if !isAlone, now >= noBatchesBefore ?? now { return true }
    requests += 1
    return false
  }

  /// - Returns: Whether a question has to be asked now.
  mutating func add(_ place: UInt64, _ done: @escaping NATSConnection.Done) -> Bool {
    entries.append(Entry(place: place, question: lastQuestion, done: done))
    defer { isAsking = true }
    return !isAsking
  }

  mutating func ask() { lastQuestion += 1 }

  /// - Parameter floor: `nil` if there was no answer.
  /// - Returns: What to call for acknowledgements that the servers have, and for those to be repeated; and whether
  ///   another question is needed.
  mutating func answer(floor: UInt64?, at now: ContinuousClock.Instant) -> (
    confirmed: [NATSConnection.Done], others: [NATSConnection.Done], goesOn: Bool
  ) {
    var (confirmed, others, rest): ([NATSConnection.Done], [NATSConnection.Done], [Entry]) = ([], [], [])
    for entry in entries {
      if let floor, entry.place <= floor {
        confirmed.append(entry.done)
      } else if floor == nil || lastQuestion - entry.question >= Self.questions {
        others.append(entry.done)
      } else {
        rest.append(entry)
      }
    }
    if others.count > confirmed.count { noBatchesBefore = now + Self.memory }
    entries = rest
    isAsking = !rest.isEmpty
    return (confirmed, others, isAsking)
  }
}

extension NATSQueue {
  func acknowledge(
    _ subject: String, at place: UInt64, before end: ContinuousClock.Instant,
    _ done: @escaping NATSConnection.Done
  ) {
    acknowledgements.send(subject, at: place, before: end, on: self, done)
  }

  /// Asks up to which place all items have been acknowledged, by what the consumer's leader knows.
  fileprivate func askForFloor(_ done: @escaping @Sendable (UInt64?) -> Void) {
    connection.request("$JS.API.CONSUMER.INFO.\(names.stream).\(names.consumer)", [], within: .seconds(2)) {
      result in
      let info = try? decoded(result.get().bytes, as: NATSConsumerInfo.self)
      done(info?.ack_floor.stream_seq)
    }
  }
}
