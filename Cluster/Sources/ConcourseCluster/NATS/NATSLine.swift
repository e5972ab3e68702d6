internal import Synchronization

// Order among the items of a concurrent queue.
//
// The servers give items out in the order of the stream, and do not know that one must wait for another. So the worker
// that gets an item asks whether it may start, and the stream is the truth: an item of a key may start when no earlier
// item of the key is in the stream. Once that is so it remains so, since new items are
// stored behind. A leader of the stream that has not applied the last changes knows too many earlier items, or not even
// the one in question; so it can delay an item, and not let it start too early.
//
// An acknowledged item disappears, but not always: replicas remove it one by one, and after the death of a server the
// stream may keep some for as long as others wait, while the consumer's floor stays below them. So the worker removes an
// item with an order from the stream, which goes through the stream's log, before it acknowledges it. A worker that has
// lost an item does neither (`NATSDelivery`), so a successor waits for the worker that has it by then.
//
// A barrier may start when no earlier item at all is there, and another item of a queue with barriers when no earlier
// barrier is. A leader that does not know the item cannot tell that there is none. So the worker asks for the state of the
// stream and its barriers in one question. The answer says: up to this place, the stream has no barrier.
//
// An item that waits is kept here, with beats, and takes no place of its worker: otherwise the predecessor, which is
// delivered again after a failure, might find no place anywhere. Of the items of one key that wait here, only the first
// is looked at: after a hint that an item of the key has ended, and each half second, since hints may be lost.

/// Whether an item may start.
enum NATSTurn: Sendable {
  case first
  /// The item has ended, or was cancelled.
  case gone
  /// Another worker may have it.
  case lost
  /// Its worker waits no longer.
  case cancelled
}

/// The items of a queue that wait in this process until their order lets them start.
final class NATSLine: Sendable {
  private struct Waiter {
    let delivery: NATSDelivery
    let order: String
    let isCancelled: @Sendable () -> Bool
    let continuation: CheckedContinuation<NATSTurn, Never>
  }

  private struct State {
    var waiters: [ObjectIdentifier: Waiter] = [:]
    /// The orders for which something has happened since the last look.
    var changed: Set<String> = []
    /// The tokens of items that may have been cancelled since the last look: in any line, or before they came to this one.
    var cancelled: Set<String> = []
    var isLooking = false

    /// Of each order, the waiter that was submitted first, and all that have no order among themselves.
    func next(of orders: Set<String>?) -> [Waiter] {
      var first: [String: Waiter] = [:]
      var others: [Waiter] = []
      for waiter in waiters.values where orders?.contains(waiter.order) ?? true {
        if waiter.order == "-" {
          others.append(waiter)
          continue
        }
        if let other = first[waiter.order], other.delivery.place <= waiter.delivery.place { continue }
        first[waiter.order] = waiter
      }
      return Array(first.values) + others
    }
  }

  private static let longestPause = Duration.milliseconds(500)

  private let state = Mutex(State())
  private let hint = Hint()

  /// Whether an earlier item of the order waits here.
  func isBehind(_ delivery: NATSDelivery, _ order: String) -> Bool {
    state.withLock { state in
      state.waiters.values.contains { $0.order == order && $0.delivery.place < delivery.place }
    }
  }

  func wait(
    for delivery: NATSDelivery, _ order: String, on queue: NATSQueue,
    unless isCancelled: @escaping @Sendable () -> Bool
  ) async -> NATSTurn {
    await withCheckedContinuation { continuation in
      let isFirst = state.withLock { state in
        state.waiters[ObjectIdentifier(delivery)] = Waiter(
          delivery: delivery, order: order, isCancelled: isCancelled, continuation: continuation)
        state.changed.insert(order)
        if let token = delivery.message.token { state.cancelled.insert(token) }
        defer { state.isLooking = true }
        return !state.isLooking
      }
      if isFirst { Task { await look(for: queue) } } else { hint.give() }
    }
  }

  private func change(_ order: String, cancelled token: String?) {
    state.withLock { state in
      state.changed.insert(order)
      if let token { state.cancelled.insert(token) }
    }
    hint.give()
  }

  /// Looks as long as items wait.
  private func look(for queue: NATSQueue) async {
    let prefix = queue.names.turnSubject + "."
    // Without it, the pauses find everything.
    let subscription = try? queue.connection.subscribe(prefix + "*") { message in
      self.change(
        String(message.subject.dropFirst(prefix.count)),
        cancelled: message.bytes.isEmpty ? nil : String(decoding: message.bytes, as: UTF8.self))
    }
    defer { withExtendedLifetime(subscription) {} }
    var (pause, isWhole, lastWhole) = (Duration.zero, true, ContinuousClock.now)
    while true {
      for waiter in state.withLock({ Array($0.waiters.values) }) {
        if waiter.delivery.isLost {
          end(waiter, .lost)
        } else if waiter.isCancelled() {
          end(waiter, .cancelled)
        }
      }
      if isWhole { lastWhole = .now }
      let (waiters, cancelled) = state.withLock { state in
        defer { (state.changed, state.cancelled) = ([], []) }
        // The end of a barrier lets any item start, and that of any item a barrier.
        let isAny = isWhole || state.changed.contains(NATSNames.barrier)
        let waiters = state.next(of: isAny ? nil : state.changed.union([NATSNames.barrier]))
        guard !state.cancelled.isEmpty else { return (waiters, [Waiter]()) }
        return (
          waiters,
          state.waiters.values.filter { state.cancelled.contains($0.delivery.message.token ?? "") }
        )
      }
      for waiter in cancelled where (try? await queue.isGone(waiter.delivery)) == true { end(waiter, .gone) }
      let hasFailed = await !look(at: waiters, for: queue)
      let isDone = state.withLock { state in
        state.isLooking = !state.waiters.isEmpty
        return !state.isLooking
      }
      if isDone { return }
      pause = isWhole ? min(max(pause * 2, .milliseconds(10)), Self.longestPause) : .milliseconds(10)
      // The task is not cancelled, so the pause does not throw.
      let isHinted = (try? await hint.pause(atMost: pause)) == true
      isWhole = hasFailed || !isHinted || ContinuousClock.now - lastWhole >= Self.longestPause
    }
  }

  /// - Returns: false if the servers did not answer. The other waiters are not looked at then: each would take as long.
  private func look(at waiters: [Waiter], for queue: NATSQueue) async -> Bool {
    guard !waiters.isEmpty else { return true }
    guard let barrier = try? await queue.firstBarrier() else { return false }
    for waiter in waiters {
      do {
        if let turn = try await queue.turn(
          of: waiter.delivery, waiter.order, before: barrier, hasWaited: true)
        {
          end(waiter, turn)
        }
      } catch {
        // It is repeated after a pause.
        return false
      }
    }
    return true
  }

  private func end(_ waiter: Waiter, _ turn: NATSTurn) {
    let isHere = state.withLock { state in
      // The next one of its order is the first now.
      state.changed.insert(waiter.order)
      return state.waiters.removeValue(forKey: ObjectIdentifier(waiter.delivery)) != nil
    }
    if isHere { waiter.continuation.resume(returning: turn) }
  }
}

extension NATSQueue {
  func turn(of delivery: NATSDelivery, unless isCancelled: @escaping @Sendable () -> Bool, waits: () -> Void)
    async throws -> NATSTurn
  {
    let order = delivery.message.order ?? "-"
    if !line.isBehind(delivery, order),
      let turn = try await turn(of: delivery, order, before: firstBarrier(), hasWaited: false)
    {
      return turn
    }
    waits()
    return await line.wait(for: delivery, order, on: self, unless: isCancelled)
  }

  // What follows is not repeated here: the caller looks again, and whether its item is lost or cancelled meanwhile.

  /// No item with a lower place is behind a barrier that has not ended.
  func firstBarrier() async throws -> UInt64 {
    guard hasBarriers else { return .max }
    let subject = subjectOfBarriers
    // The server reads the last place first.
    let info: NATSStreamInfo = try await ask(
      "STREAM.INFO.\(names.stream)", NATSStreamQuestion(subjects_filter: subject), repeatedFor: .zero)
    if info.state.subjects?.isEmpty ?? true { return info.state.last_seq + 1 }
    // None if it has ended meanwhile, or if another leader answers: the next look will tell.
    return try await first(of: subject) ?? 0
  }

  /// - Parameters:
  ///   - barrier: `firstBarrier()`.
  ///   - hasWaited: Whether it may have been cancelled in the line.
  /// - Returns: `nil` if the item has to wait.
  func turn(of delivery: NATSDelivery, _ order: String, before barrier: UInt64, hasWaited: Bool) async throws
    -> NATSTurn?
  {
    let places = delivery.places
    if order != NATSNames.barrier, barrier < places[0] { return nil }
    if order == "-" {
      guard hasWaited, delivery.message.token != nil else { return .first }
      return try await isGone(delivery) ? .gone : .first
    }
    guard let first = try await first(of: subject(ofOrder: order)) else {
      return try await isGone(delivery) ? .gone : nil
    }
    if first < places[0] { return nil }
    return places.contains(first) ? .first : .gone
  }

  private var subjectOfBarriers: String { "\(names.subject).\(NATSNames.barrier).*.*" }

  private func subject(ofOrder order: String) -> String {
    names.subject + (order == NATSNames.barrier ? ".>" : ".\(order).*.*")
  }

  /// Whether an item that was stored is not in the stream any more. A leader that has not applied it cannot tell.
  func isGone(_ delivery: NATSDelivery) async throws -> Bool {
    let (subject, places) = (delivery.message.subject, delivery.places)
    let request = NATSGet(seq: places[0], next_by_subj: subject)
    if let found = try await stored(in: names.stream, request, repeatedFor: .zero) {
      return !places.contains(found.message.seq)
    }
    // The server reads the last place first.
    let info: NATSStreamInfo = try await ask(
      "STREAM.INFO.\(names.stream)", NATSStreamQuestion(subjects_filter: subject), repeatedFor: .zero)
    return (info.state.subjects?.isEmpty ?? true) && info.state.last_seq >= places[0]
  }

  /// Whether an item in that place must wait for another one, by a leader that has a majority: by another one, it could
  /// have started long ago.
  func isBehind(_ place: UInt64, _ order: String) async throws -> Bool {
    var subjects = order == "-" ? [] : [subject(ofOrder: order)]
    if hasBarriers, order != NATSNames.barrier { subjects.append(subjectOfBarriers) }
    return try await engine.repeated(for: engine.timeout) {
      for subject in subjects {
        guard let first = try await first(of: subject), first < place else { continue }
        let info: NATSStreamInfo = try await ask(
          "STREAM.INFO.\(names.stream)", NATSNothing(), repeatedFor: .zero)
        guard info.cluster?.isConfirmed ?? true else { throw NATSFailure.unconfirmedLeader }
        return true
      }
      return false
    }
  }

  private func first(of subject: String) async throws -> UInt64? {
    let request = NATSGet(seq: 1, next_by_subj: subject)
    return try await stored(in: names.stream, request, repeatedFor: .zero)?.message.seq
  }

  func remove(at place: UInt64) async throws {
    let request = try encoded(NATSDelete(seq: place, no_erase: true))
    do {
      let answer = try await connection.request(
        "$JS.API.STREAM.MSG.DELETE.\(names.stream)", request, within: .seconds(2))
      let _: NATSNothing = try decoded(answer.bytes)
    } catch let refusal as NATSRefusal where !refusal.isPassing {
      // It was gone.
    }
  }

  // MARK: Starts

  private func subject(ofStartsAt place: UInt64) -> String { "\(names.startsSubject).\(place)" }

  /// Only the worker that has the item does that. The first start has left no count.
  func countStart(at place: UInt64) async throws -> Int {
    let subject = subject(ofStartsAt: place)
    let stored = try await stored(in: names.failedStream, NATSGet(last_by_subj: subject))
    let start = 1 + (stored?.message.data.flatMap { Int(String(decoding: $0, as: UTF8.self)) } ?? 1)
    try await submit(Array("\(start)".utf8), to: subject, [], id: "start-\(place)")
    return start
  }

  /// A count that stays takes some bytes: no other item comes to that place.
  func forgetStarts(at place: UInt64) async {
    let _: NATSNothing? = try? await ask(
      "STREAM.PURGE.\(names.failedStream)", NATSPurge(filter: subject(ofStartsAt: place)))
  }
}
