internal import FoundationEssentials
internal import Synchronization

/// A queue on the servers: a stream from which acknowledged items disappear, a consumer that all workers share, a stream
/// for the items that were put aside, and one for ids (`NATSQueue+Ids.swift`).
final class NATSQueue: EngineQueue, NATSDeliveryQueue {
  enum Header {
    /// Names the item (`NATSItem`). The servers' own header for that is not used (`NATSQueue+Ids.swift`).
    static let id = "Concourse-Id"
    /// Names one try to store an item whose id a program gave.
    static let token = "Concourse-Token"
    /// When the item may start, in nanoseconds since 1970.
    static let due = "Concourse-Due"
    static let wantsResult = "Concourse-Wants-Result"
    /// The order of an item that was put aside. That of others is in their subject.
    static let order = "Concourse-Order"
    /// What kind of outcome it is.
    static let outcome = "Concourse-Outcome"
    static let reason = "Concourse-Reason"
    static let attempts = "Concourse-Attempts"
  }

  /// What the ids begin with that this engine makes, each for one submission, and those that programs gave.
  static let onceOnly = "once-"
  static let given = "id-"
  /// For an item that has waited for its time (`NATSMover.swift`).
  static let moved = "moved-"
  /// For an item that was put aside. Its number is used once.
  static let putBack = "put-back-"
  /// What headers may need beside the item.
  static let roomForHeaders = 8_192
  static let longestReason = 1_000

  let settings: QueueSettings
  let names: NATSNames
  let engine: NATSEngine
  let held = NATSHeldItems()
  let gate = NATSGate()
  let line = NATSLine()
  let acknowledgements = NATSAcknowledgements()
  /// Whether this process knows that the stream of results exists.
  let hasStreamOfResults = Mutex(false)

  init(_ settings: QueueSettings, on engine: NATSEngine) {
    self.settings = settings
    self.engine = engine
    names = NATSNames(label: settings.label)
  }

  var connection: NATSConnection { engine.connection }
  var isOpen: Bool { gate.isOpen }
  var hasBarriers: Bool { settings.hasBarriers }
  var patience: Duration { settings.options.patience }
  var patienceOfMovers: Duration { min(patience, .seconds(30)) }
  var idsAreKept: Duration { settings.options.idsAreKept }

  /// All settings, and the form of the subjects, so that a stream with others differs from this one: the servers compare
  /// it.
  private var summary: String {
    let options = settings.options
    return """
      Concourse queue of form 2, \(settings.isSerial ? "serial" : "concurrent of width \(options.width)")\
      \(settings.hasBarriers ? " with barriers" : ""), \
      \(options.attempts) attempts, delays \(options.retryDelay.exact) to \(options.longestRetryDelay.exact), patience \
      \(options.patience.exact), ids for \(options.idsAreKept.exact), results for \(options.resultsAreKept.exact), \
      \(options.limit.map { "at most \($0) items" } ?? "no limit")
      """
  }

  /// Makes what does not exist yet.
  func create(replicas: Int) async throws {
    // None of the streams refuses a message, since servers that restart would not agree on it
    // (`NATSQueue+Ids.swift`).
    var stream = NATSStream(
      name: names.stream, description: summary, subjects: [names.subject + ".*.*.*"], retention: "workqueue",
      num_replicas: replicas)
    var consumer = NATSConsumerRequest(
      stream_name: names.stream,
      config: .init(
        durable_name: names.consumer, ack_wait: patience.forServers,
        max_ack_pending: settings.width))
    try await asClusterErrors {
      do {
        try await create(stream)
        stream.name = names.laterStream
        stream.subjects = [names.laterSubject + ".*.*.*"]
        try await create(stream)
        stream.name = names.failedStream
        stream.subjects = [names.failedSubject + ".*", names.suspensionSubject, names.startsSubject + ".*"]
        stream.retention = "limits"
        stream.max_msgs_per_subject = 1
        try await create(stream)
        try await checkServers()
        stream.name = names.idsStream
        stream.subjects = [names.idsSubject + ".*"]
        stream.max_msgs_per_subject = -1
        stream.max_age = (settings.options.idsAreKept * 2).forServers
        try await create(stream)
        let _: NATSNothing = try await ask(
          "CONSUMER.DURABLE.CREATE.\(names.stream).\(names.consumer)", consumer)
        consumer.stream_name = names.laterStream
        consumer.config.ack_wait = patienceOfMovers.forServers
        // Items that wait for their time count as delivered, and must not hold others up.
        consumer.config.max_ack_pending = -1
        let _: NATSNothing = try await ask(
          "CONSUMER.DURABLE.CREATE.\(names.laterStream).\(names.consumer)", consumer)
      } catch let refusal as NATSRefusal where refusal.err_code == NATSRefusal.otherConfiguration {
        let info: NATSStreamInfo = try await ask("STREAM.INFO.\(stream.name)", NATSNothing())
        throw ClusterError.mismatch(
          queue: settings.label,
          reason:
            "it is there as \"\(info.config.description ?? "")\", and this process wants \"\(summary)\"")
      }
    }
  }

  private var tooOld: ClusterError {
    .engine(
      queue: settings.label,
      reason: "a server is too old: it does not find messages by their subjects. NATS 2.9 does")
  }

  /// Older servers ignore the part of a question that they do not know, and answer with another message or with none. A
  /// question that has no other part they call wrong.
  private func checkServers() async throws {
    do {
      _ = try await stored(in: names.failedStream, NATSGet(next_by_subj: names.suspensionSubject))
    } catch let refusal as NATSRefusal where refusal.err_code == NATSRefusal.badRequest {
      throw tooOld
    }
  }

  private func create(_ stream: NATSStream) async throws {
    let _: NATSNothing = try await ask("STREAM.CREATE.\(stream.name)", stream)
  }

  func ask<Answer: Decodable>(
    _ operation: String, _ request: some Encodable, repeatedFor time: Duration? = nil
  ) async throws -> Answer {
    try await engine.ask(operation, request, repeatedFor: time)
  }

  /// What programs may see of a failure. All that this class throws passes through here.
  func asClusterErrors<Result>(_ body: () async throws -> Result) async throws -> Result {
    do {
      return try await body()
    } catch {
      throw Self.visible(error, queue: settings.label)
    }
  }

  static func visible(_ error: any Error, queue label: String) -> any Error {
    switch error {
    case is ClusterError, is CancellationError: error
    case NATSFailure.closed: ClusterError.closed
    default: ClusterError.engine(queue: label, reason: "\(error)")
    }
  }

  // MARK: Submissions

  func store(_ item: NewItem) async throws -> ClusterSubmission {
    try await asClusterErrors { try await add(item).0 }
  }

  /// - Returns: What names the item that counts, too: the token of the first claim for its id, or the id that is made
  ///   here.
  func add(_ item: NewItem) async throws -> (ClusterSubmission, name: String) {
    let limit = connection.largestMessage - Self.roomForHeaders
    guard item.bytes.count <= limit else {
      throw ClusterError.tooLarge(queue: settings.label, bytes: item.bytes.count, limit: limit)
    }
    var headers: [(name: String, value: String)] = []
    if let due = item.due { headers.append((Header.due, "\(due.nanoseconds)")) }
    let group = item.group.map { Self.part(ofGroup: $0) } ?? "-"
    let order = NATSNames.part(of: item.order)
    if item.wantsResult { headers.append((Header.wantsResult, "yes")) }
    if let id = item.id {
      let key = Self.given + NATSNames.encoded(id)
      return try await storeOnce(
        item.bytes, to: names.place(waits: item.due != nil, order: order, key, group: group), headers,
        key: key,
        id: id, isRun: item.wantsResult, check: checkLimit)
    }
    try await checkLimit()
    let key = Self.onceOnly + connection.newName()
    try await submit(
      item.bytes, to: names.place(waits: item.due != nil, order: order, group: group),
      headers + [(Header.id, key)], id: key)
    return (.stored, key)
  }

  /// The tries of one submission have one key: more than one may be stored, and due when their claim is forgotten.
  static func key(ofMoveOf token: String) -> String {
    moved + NATSNames.encoded(String(token.prefix { $0 != "/" }))
  }

  /// Stores an item that is due in the queue, which counts once. The limit has counted it before.
  func move(_ delivery: NATSDelivery) async throws {
    let key = Self.key(ofMoveOf: delivery.message.token ?? delivery.item.id)
    // "concourse", the queue, "later", the order, the id, the group.
    let parts = delivery.message.subject.split(separator: ".")
    guard parts.count == 6 else { throw NATSFailure.library("the subject is \(delivery.message.subject)") }
    _ = try await storeOnce(
      delivery.bytes, to: "\(names.subject).\(parts[3]).\(parts[4]).\(parts[5])", [], key: key,
      id: delivery.item.id
    ) {}
  }

  /// Several submissions at the same time may all pass it. The consumer's count would be late.
  func checkLimit() async throws {
    guard let limit = settings.options.limit else { return }
    var count = 0
    for stream in [names.stream, names.laterStream] {
      let info: NATSStreamInfo = try await ask("STREAM.INFO.\(stream)", NATSNothing())
      count += info.state.messages
    }
    if count >= limit { throw ClusterError.full(queue: settings.label, limit: limit) }
  }

  /// Repeats the submission until it is acknowledged.
  /// - Parameter headers: Made anew for each try.
  func submit(
    _ bytes: [UInt8], to subject: String,
    _ headers: @autoclosure () -> [(name: String, value: String)], id: String
  ) async throws {
    var submission = NATSSubmission(queue: settings.label, id: id, bytes: bytes.count)
    do {
      try await engine.repeated(for: engine.timeout) {
        do {
          let answer = try await connection.request(subject, headers: headers(), bytes)
          if !answer.saysStored { let _: NATSNothing = try decoded(answer.bytes) }
        } catch {
          submission.failed(with: error)
          throw error
        }
      }
    } catch {
      throw submission.outcome(of: error, largest: connection.largestMessage - Self.roomForHeaders)
    }
  }

  /// The consumers know it. A stream may keep items that were acknowledged while a server was killed. An item that is
  /// moved at the moment may count twice.
  func pendingCount() async throws -> Int {
    try await asClusterErrors {
      var count = 0
      for stream in [names.laterStream, names.stream] {
        let info = try await consumerInfo(of: stream)
        count += info.num_pending + info.num_ack_pending
      }
      return count
    }
  }

  func consumerInfo(of stream: String) async throws -> NATSConsumerInfo {
    try await ask("CONSUMER.INFO.\(stream).\(names.consumer)", NATSNothing())
  }

  // MARK: Deliveries

  func deliveries(to receive: @escaping @Sendable (any Delivery) -> Void) async throws -> any DeliverySource {
    try await asClusterErrors { try await NATSWorker(of: self, receive) }
  }

  func tell(
    _ subject: String, _ text: String, before end: ContinuousClock.Instant,
    _ done: @escaping NATSConnection.Done
  ) {
    connection.request(subject, Array(text.utf8), within: .seconds(2), before: end, done)
  }

  // MARK: Items that were put aside

  /// Stores the item among the failed ones. If it is there already, under the same subject, this one takes its place.
  func bury(_ message: NATSMessage, _ item: NATSItem, reason: String, attempts: Int) async throws {
    let id = "failed-\(item.id)-\(item.time)"
    let headers = [
      (Header.id, id),
      (Header.order, message.order ?? "-"),
      (Header.reason, NATSNames.encoded(reason.cut(to: Self.longestReason))),
      (Header.attempts, "\(attempts)"),
    ]
    try await submit(message.bytes, to: "\(names.failedSubject).\(NATSNames.encoded(id))", headers, id: id)
  }

  func failures(after number: UInt64, atMost count: Int) async throws -> [StoredFailure] {
    try await failures(after: number, atMost: count) { $0 }
  }

  /// As the other, of which each element is made before the next item is read: all bytes together may be too many.
  func failures<Element>(after number: UInt64, atMost count: Int, _ element: (StoredFailure) -> Element)
    async throws -> [Element]
  {
    try await asClusterErrors {
      var (elements, last): ([Element], UInt64) = ([], number)
      while elements.count < count, last < .max,
        let stored = try await failure(NATSGet(seq: last + 1, next_by_subj: names.failedSubject + ".*"))
      {
        last = stored.message.seq
        elements.append(
          element(
            StoredFailure(
              number: last, bytes: [UInt8](stored.message.data ?? Data()),
              reason: stored.header(Header.reason) ?? "",
              attempts: stored.header(Header.attempts).flatMap { Int($0) } ?? 0,
              id: stored.rawHeader(Header.id).flatMap { Self.givenId(ofFailure: $0) },
              time: stored.message.time ?? "")))
      }
      return elements
    }
  }

  /// What `bury` has made of an id.
  private static func givenId(ofFailure id: String) -> String? {
    let prefix = "failed-" + given
    guard id.hasPrefix(prefix), let end = id.lastIndex(of: "-") else { return nil }
    return NATSNames.decoded(String(id[..<end].dropFirst(prefix.count)))
  }

  private func failure(_ request: NATSGet) async throws -> NATSStored? {
    try await stored(in: names.failedStream, request)
  }

  func stored(in stream: String, _ request: NATSGet, repeatedFor time: Duration? = nil) async throws
    -> NATSStored?
  {
    do {
      let stored: NATSStored = try await ask("STREAM.MSG.GET.\(stream)", request, repeatedFor: time)
      guard request.isAnswered(by: stored.message) else { throw tooOld }
      return stored
    } catch let refusal as NATSRefusal where refusal.err_code == NATSRefusal.noMessage {
      return nil
    }
  }

  private func existingFailure(_ number: UInt64) async throws -> NATSStored {
    // The stream has other messages, too: whether the queue is suspended, and starts.
    guard number > 0, let stored = try await failure(NATSGet(seq: number)),
      stored.message.subject.hasPrefix(names.failedSubject + ".")
    else {
      throw ClusterError.noSuchFailure(queue: settings.label, number: number)
    }
    return stored
  }

  /// Between both steps the item is in both places, and stays there if the process ends. Two programs may put it back at
  /// the same time. So the submission has an id: as long as ids are kept, it counts once.
  func putBack(_ number: UInt64) async throws {
    try await asClusterErrors {
      try await submitAgain(number)
      try await remove(number)
    }
  }

  /// The first step.
  func submitAgain(_ number: UInt64) async throws {
    let stored = try await existingFailure(number)
    _ = try await storeOnce(
      [UInt8](stored.message.data ?? Data()),
      to: names.place(waits: false, order: stored.rawHeader(Header.order) ?? "-"), [],
      key: "\(Self.putBack)\(number)", id: "\(number)"
    ) {}
  }

  func discard(_ number: UInt64) async throws {
    try await asClusterErrors {
      _ = try await existingFailure(number)
      try await remove(number)
    }
  }

  private func remove(_ number: UInt64) async throws {
    do {
      let _: NATSNothing = try await ask(
        "STREAM.MSG.DELETE.\(names.failedStream)", NATSDelete(seq: number))
    } catch let refusal as NATSRefusal where !refusal.isPassing {
      // Another program has removed it meanwhile.
    }
  }
}

/// What is known of a submission that is repeated: once a try got no answer, the item may be stored, and no later
/// refusal says otherwise.
struct NATSSubmission {
  let queue: String
  let id: String
  let bytes: Int
  private var mayBeStored = false

  init(queue: String, id: String, bytes: Int) {
    (self.queue, self.id, self.bytes) = (queue, id, bytes)
  }

  mutating func failed(with error: any Error) {
    switch error {
    case NATSFailure.noResponders, NATSFailure.notConnected, NATSFailure.late, NATSFailure.tooLarge,
      is NATSRefusal:
      break
    default: mayBeStored = true
    }
  }

  /// What the submission throws, after its last try.
  func outcome(of error: any Error, largest: Int) -> any Error {
    switch error {
    case is CancellationError, NATSFailure.closed: error
    case _ where mayBeStored: ClusterError.notAcknowledged(queue: queue, id: id, reason: "\(error)")
    case NATSFailure.tooLarge: ClusterError.tooLarge(queue: queue, bytes: bytes, limit: largest)
    default: error
    }
  }
}

extension String {
  /// The longest beginning of at most that many bytes.
  func cut(to limit: Int) -> String {
    guard utf8.count > limit else { return self }
    var end = utf8.index(startIndex, offsetBy: limit)
    while end.samePosition(in: unicodeScalars) == nil { end = utf8.index(before: end) }
    return String(self[..<end])
  }
}
