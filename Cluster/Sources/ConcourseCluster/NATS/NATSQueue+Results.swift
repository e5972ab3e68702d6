internal import FoundationEssentials
internal import Synchronization

// Results of items.
//
// The result of an item is a message in a stream of its own, whose subject names the item: by the token of the claim for
// its id, or by the id that the engine has made for one submission. The worker stores it before it acknowledges the
// item, so an item that is finished has a result. An item may run more than once; the first message of the subject
// counts. Callers subscribe to the subject, too, and so learn at once that they should look into the stream; if that
// message is lost, they look after a while.
//
// Servers may refuse to keep a result, if the stream has as much as an administrator allows. Another start of the item would
// not help, so it is put aside. If they keep not even that, the worker tells callers that wait now, by a message that no
// stream keeps; a later caller of the id finds nothing, and waits.

extension NATSQueue {
  private enum Kind {
    static let result = "result"
    static let nothing = "nothing"
    static let failure = "failure"
    static let cancellation = "cancellation"
  }

  private func subject(ofResult name: String) -> String {
    "\(names.resultsSubject).\(NATSNames.encoded(name))"
  }

  /// Where callers hear of an end that the servers do not keep.
  private func subject(ofUnkept name: String) -> String {
    "\(names.hintSubject).\(NATSNames.encoded(name))"
  }

  private struct UnkeptEnd: Codable {
    /// `nil` of an item that was cancelled.
    var reason: String?
    var attempts = 0

    var outcome: ItemOutcome { reason.map { .failed(reason: $0, attempts: attempts) } ?? .cancelled }
  }

  func announce(_ outcome: ItemOutcome, of message: NATSMessage) {
    guard let name = message.token ?? message.id else { return }
    var end = UnkeptEnd()
    switch outcome {
    case .failed(let reason, let attempts):
      (end.reason, end.attempts) = (reason.cut(to: Self.longestReason), attempts)
    case .cancelled: break
    // An item without its result has not ended.
    case .result: return
    }
    try? connection.publish(subject(ofUnkept: name), encoded(end))
  }

  func run(_ item: NewItem) async throws -> ItemOutcome {
    try await asClusterErrors {
      try await makeStreamOfResults()
      let name = try await add(item).name
      if item.id != nil, !name.hasPrefix(Self.run) {
        throw ClusterError.noResult(queue: settings.label, reason: QueueSettings.wantsNoResult)
      }
      return try await outcome(of: name)
    }
  }

  /// It must be there before the item.
  private func makeStreamOfResults() async throws {
    if hasStreamOfResults.withLock({ $0 }) { return }
    let _: NATSNothing = try await ask(
      "STREAM.CREATE.\(names.resultsStream)",
      NATSStream(
        name: names.resultsStream, description: "Results of a Concourse queue",
        subjects: [names.resultsSubject + ".*"], retention: "limits", num_replicas: engine.replicas,
        // Longer than claims are kept, although clocks differ.
        max_age: max(settings.options.resultsAreKept, idsAreKept * 3).forServers))
    hasStreamOfResults.withLock { $0 = true }
  }

  private func outcome(of name: String) async throws -> ItemOutcome {
    let subject = subject(ofResult: name)
    let hint = Hint()
    let unkept = Mutex<ItemOutcome?>(nil)
    let subscriptions = [
      try connection.subscribe(subject) { _ in hint.give() },
      try connection.subscribe(self.subject(ofUnkept: name)) { message in
        guard let end = try? decoded(message.bytes, as: UnkeptEnd.self) else { return }
        unkept.withLock { $0 = end.outcome }
        hint.give()
      },
    ]
    defer { withExtendedLifetime(subscriptions) {} }
    var pauses = Pauses(hint)
    while true {
      if let stored = try await stored(
        in: names.resultsStream, NATSGet(seq: 1, next_by_subj: subject))
      {
        return outcome(in: stored)
      }
      if let outcome = unkept.withLock({ $0 }) { return outcome }
      try await pauses.wait()
    }
  }

  private func outcome(in stored: NATSStored) -> ItemOutcome {
    switch stored.header(Header.outcome) {
    case Kind.result: .result([UInt8](stored.message.data ?? Data()))
    case Kind.failure:
      .failed(
        reason: stored.header(Header.reason) ?? "",
        attempts: stored.header(Header.attempts).flatMap { Int($0) } ?? 0)
    case Kind.cancellation: .cancelled
    default: .result(nil)
    }
  }

  func keep(_ outcome: ItemOutcome, of message: NATSMessage) async throws {
    guard let name = message.token ?? message.id else { return }
    let (bytes, headers): ([UInt8], [(name: String, value: String)]) =
      switch outcome {
      case .result(let result): (result ?? [], [(Header.outcome, result == nil ? Kind.nothing : Kind.result)])
      case .cancelled: ([], [(Header.outcome, Kind.cancellation)])
      case .failed(let reason, let attempts):
        (
          [],
          [
            (Header.outcome, Kind.failure),
            (Header.reason, NATSNames.encoded(reason.cut(to: Self.longestReason))),
            (Header.attempts, "\(attempts)"),
          ]
        )
      }
    let limit = connection.largestMessage - Self.roomForHeaders
    guard bytes.count <= limit else {
      throw ClusterError.tooLarge(queue: settings.label, bytes: bytes.count, limit: limit)
    }
    try await submit(bytes, to: subject(ofResult: name), headers, id: name)
  }
}
