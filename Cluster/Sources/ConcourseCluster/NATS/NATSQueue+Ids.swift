internal import FoundationEssentials
internal import Synchronization

// Submissions with an id count once.
//
// JetStream can drop a message whose header "Nats-Msg-Id" it has seen. In version 2.9.10 that makes the replicas of a
// stream differ: a server that restarts has forgotten the ids of messages that were finished meanwhile, and stores the
// repetition that the others drop. From there on its places are other ones than theirs. When it becomes the leader, the
// consumer's acknowledgements mean other items (README, "Why no ids of the servers"). So no stream may refuse anything.
//
// Here each id has a subject in a stream of claims, which refuses nothing: the first claim of a subject counts. A claim
// names one try to store an item, by a token that the item has in a header, too. It is made after the item was stored:
// by the submission, or, if that has ended before, by the worker that gets the item. So there is always an item for the
// first claim, and workers drop those with other tokens.
//
// Claims are forgotten after twice the time for which ids are kept. A worker that gets an item later than that may find
// the claim of another submission. It must not drop the item, so it asks only for items that are younger than the time
// for which ids are kept: the claims of these are there, unless clocks differ by as much as that time.

extension NATSQueue {
  /// What the tokens of items begin with whose result a caller wants.
  static let run = "run-"

  /// Stores an item unless the key was claimed before.
  /// - Returns: The token of the first claim, too.
  /// - Parameters:
  ///   - id: What errors call the item.
  ///   - isRun: Whether a caller waits for the result. The tokens say that, too.
  ///   - check: May refuse the item.
  func storeOnce(
    _ bytes: [UInt8], to subject: String, _ others: [(name: String, value: String)], key: String, id: String,
    isRun: Bool = false, check: () async throws -> Void
  ) async throws -> (ClusterSubmission, name: String) {
    if let first = try await firstClaim(of: key) { return (.duplicate, first) }
    try await check()
    // Each try has its own token: of two that were stored, the claim names one.
    let name = (isRun ? Self.run : "") + connection.newName()
    let tries = Mutex(0)
    func token() -> String { "\(name)/\(tries.withLock { $0 })" }
    func headers() -> [(name: String, value: String)] {
      tries.withLock { $0 += 1 }
      return others + [(Header.id, key), (Header.token, token())]
    }
    try await submit(bytes, to: subject, headers(), id: id)
    do {
      // A worker may have claimed another try of this submission.
      let first = try await claim(key, token())
      return (first.hasPrefix(name + "/") ? .stored : .duplicate, first)
    } catch {
      throw error is CancellationError || error is ClusterError
        ? error : ClusterError.notAcknowledged(queue: settings.label, id: id, reason: "\(error)")
    }
  }

  func isFirst(_ key: String, token: String) async throws -> Bool { try await claim(key, token) == token }

  /// Claims the id for the item of that token, if there is no claim.
  /// - Returns: The token of the first claim.
  func claim(_ key: String, _ token: String) async throws -> String {
    try await engine.repeated(for: engine.timeout) {
      if let first = try await firstClaim(of: key) { return first }
      let answer = try await connection.request("\(names.idsSubject).\(key)", Array(token.utf8))
      let _: NATSNothing = try decoded(answer.bytes)
      // A server that has just become the leader may not have applied the claim. Another claim of the token is harmless.
      guard let first = try await firstClaim(of: key) else { throw NATSFailure.noResponders }
      return first
    }
  }

  private func firstClaim(of key: String) async throws -> String? {
    try await stored(in: names.idsStream, NATSGet(seq: 1, next_by_subj: "\(names.idsSubject).\(key)"))
      .map { String(decoding: $0.message.data ?? Data(), as: UTF8.self) }
  }
}
