internal import FoundationEssentials

// Cancelling an item by its id.
//
// The id is in the subject of an item, so the item can be found. Removing its message is not enough, and not always
// right: if a worker has the item, the servers would give out the next one, although a serial queue runs one at a time.
// So first a mark is stored, which names the item by the token of its submission, and which each worker looks for before
// it starts an item with an id. Then the consumer is asked how far it has given items out. If it has not come to this
// one, no worker can have started it, and none will: it is removed. The answer counts only from a leader that has just
// heard from a majority: one that is cut off does not know what another one has given out meanwhile.
//
// A worker that has an item with an order may not start it while the stream has those for which it waits, and looks for
// the mark after that. So if one of these is there when the mark is, the item has not started, and will not: it is removed,
// too, and its worker is told, which finds out in its turn otherwise (`NATSLine.swift`). By then the mark may be
// forgotten, but the item is gone.
//
// Any other item stays, and the mark keeps it from being started again.
//
// An item that waits for its time is cancelled by a claim of its move (`NATSMover.swift`): either the move was claimed
// before, and the item is in the queue, or it cannot be moved any more.

extension NATSQueue {
  private static var cancelled: String { "cancelled" }

  private func mark(of token: String) -> String { "\(names.idsSubject).cancel-\(NATSNames.encoded(token))" }

  /// `cancel` promises of an item that has started only that it does not start again, and of one that waits for others that
  /// it does not start. A leader that is cut off answers that there is no mark, although there is one. So such a start is
  /// entered in the log of the marks first: a majority has to
  /// take that, and a server that knows the entry knows all marks before it.
  func isCancelled(token: String, again: Bool) async throws -> Bool {
    let (mark, start) = (mark(of: token), connection.newName())
    return try await engine.repeated(for: engine.timeout) {
      if again {
        let _: NATSNothing = try decoded(try await connection.request(mark, Array(start.utf8)).bytes)
      }
      var last: UInt64 = 0
      while let stored = try await stored(
        in: names.idsStream, NATSGet(seq: last + 1, next_by_subj: mark), repeatedFor: .zero)
      {
        let text = String(decoding: stored.message.data ?? Data(), as: UTF8.self)
        if text == Self.cancelled { return true }
        if text == start { return false }
        last = stored.message.seq
      }
      // The server that answers has not applied the entry yet.
      if again { throw NATSFailure.noResponders }
      return false
    }
  }

  func cancel(id: String) async throws -> ClusterCancellation {
    try await asClusterErrors {
      let key = Self.given + NATSNames.encoded(id)
      let first = try await cancel(key: key)
      if first != .notPending { return first }
      // A server that has just become the leader may not have applied the item.
      for stream in [names.laterStream, names.stream] {
        try await passLog(of: stream, floor: consumerInfo(of: stream).ack_floor.stream_seq)
      }
      return try await cancel(key: key)
    }
  }

  private func cancel(key: String) async throws -> ClusterCancellation {
    var outcomes: Set<ClusterCancellation> = []
    for stored in try await items(of: key, in: names.laterStream, names.laterSubject) {
      guard let token = stored.rawHeader(Header.token) else { continue }
      let first = try await claim(Self.key(ofMoveOf: token), Self.cancelled)
      guard first == Self.cancelled else { continue }
      try await remove(stored, from: names.laterStream)
      hasEnded(NATSMessage(subject: stored.message.subject, reply: nil, bytes: []))
      outcomes.insert(.cancelled)
    }
    // More than one if a submission was repeated.
    for stored in try await items(of: key, in: names.stream, names.subject) {
      guard let token = stored.rawHeader(Header.token) else { continue }
      try await submit(Array(Self.cancelled.utf8), to: mark(of: token), [], id: key)
      let message = NATSMessage(
        subject: stored.message.subject, reply: nil, bytes: [], id: stored.rawHeader(Header.id), token: token,
        wantsResult: stored.rawHeader(Header.wantsResult) != nil)
      if try await mayHaveStarted(message, at: stored.message.seq) {
        outcomes.insert(.started)
        continue
      }
      if message.wantsResult { try await keep(.cancelled, of: message) }
      try await remove(stored, from: names.stream)
      hasEnded(message, cancelled: token)
      outcomes.insert(.cancelled)
    }
    return outcomes.contains(.started) ? .started : outcomes.first ?? .notPending
  }

  /// Whether a worker may have started it before it could see the mark.
  private func mayHaveStarted(_ message: NATSMessage, at place: UInt64) async throws -> Bool {
    guard try await lastDelivered() >= place else { return false }
    guard let order = order(of: message) else { return true }
    return try await !isBehind(place, order)
  }

  /// The last place that was given out, by a leader that has a majority. By another one, an item that a worker has would
  /// be removed, and a serial queue would give out the next one beside it.
  func lastDelivered(repeatedFor time: Duration? = nil) async throws -> UInt64 {
    try await engine.repeated(for: time ?? engine.timeout) {
      let info: NATSConsumerInfo = try await ask(
        "CONSUMER.INFO.\(names.stream).\(names.consumer)", NATSNothing(), repeatedFor: .zero)
      guard info.isConfirmed else { throw NATSFailure.unconfirmedLeader }
      return info.delivered.stream_seq
    }
  }

  /// The messages of the id that were not acknowledged.
  private func items(of key: String, in stream: String, _ subject: String) async throws -> [NATSStored] {
    var (items, last) = ([NATSStored](), try await consumerInfo(of: stream).ack_floor.stream_seq)
    while let stored = try await stored(
      in: stream, NATSGet(seq: last + 1, next_by_subj: "\(subject).*.\(key).*"))
    {
      last = stored.message.seq
      items.append(stored)
    }
    return items
  }

  private func remove(_ stored: NATSStored, from stream: String) async throws {
    do {
      let _: NATSNothing = try await ask(
        "STREAM.MSG.DELETE.\(stream)", NATSDelete(seq: stored.message.seq, no_erase: true))
    } catch let refusal as NATSRefusal where !refusal.isPassing {
      // A worker has dropped it meanwhile.
    }
  }
}
