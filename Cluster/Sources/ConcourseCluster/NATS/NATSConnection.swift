internal import CNATS
internal import Concourse
internal import Synchronization

/// A message that a server has sent.
struct NATSMessage: Sendable {
  let subject: String
  let reply: String?
  let bytes: [UInt8]
  /// The id with which it was stored.
  var id: String?
  /// Names the try that stored it, if a program gave the id.
  var token: String?
  /// When it may start, if it may not at once.
  var due: WallTime?
  /// Whether a caller waits for its result.
  var wantsResult = false
  /// Three digits, of messages by which the server says something of a request.
  var status: String?
  /// How many of a request's messages will not come, of such messages.
  var missing: Int?

  /// Which part of an item's subject says what must have ended before it starts: after "concourse", the queue and
  /// "items".
  var order: String? {
    let parts = subject.split(separator: ".")
    return parts.count == 6 && parts[3] != "-" ? String(parts[3]) : nil
  }
}

/// Why a request got no answer.
enum NATSFailure: Error, CustomStringConvertible {
  case timeout(Duration)
  /// No server listens on the subject: its stream or consumer has no leader, or does not exist.
  case noResponders
  /// The connection is being made again. Nothing was sent.
  case notConnected
  case tooLarge
  case closed
  case library(String)

  var description: String {
    switch self {
    case .timeout(let time): "no answer within \(time)"
    case .noResponders: "no server answers for it: JetStream is off there, or has no leader now"
    case .notConnected: "there is no connection to a server now"
    case .tooLarge: "the message is too large"
    case .closed: "the connection is closed"
    case .library(let text): text
    }
  }
}

/// One connection of the client library, with requests that tasks await.
///
/// The library connects again by itself. What is published meanwhile fails: the library would keep it and send it after
/// the deadlines have passed for which it was meant. All requests share one inbox. A request ends in one of three ways:
/// its answer, its time, the end of the connection; the one that takes it out of `State.requests` calls `done`.
final class NATSConnection: Sendable {
  typealias Done = @Sendable (Result<NATSMessage, any Error>) -> Void

  private struct Request {
    let done: Done
    let patience: Duration
    let end: ContinuousClock.Instant
  }

  private struct State {
    var isClosed = false
    var lastNumber: UInt64 = 0
    var requests: [UInt64: Request] = [:]
    var isSweeping = false
  }

  /// How often requests are checked for their time, while there are any.
  private static let sweep = DispatchTimeInterval.milliseconds(250)

  // SAFETY: the library's functions take a connection from any thread. It is destroyed in `deinit`.
  private nonisolated(unsafe) let connection: OpaquePointer
  /// What the subject of each answer begins with.
  private let inbox: String
  private let state = Mutex(State())
  private let answers = Mutex<NATSSubscription?>(nil)

  /// - Parameter connection: Owned from here on.
  init(_ connection: OpaquePointer) throws {
    self.connection = connection
    inbox = Self.newInbox()
    let subscription = try subscribe(inbox + ".*") { [weak self] message in self?.take(message) }
    answers.withLock { $0 = subscription }
  }

  deinit {
    // Elsewhere, since the last reference may end on the library's thread, for which destroying waits.
    // SAFETY: no other reference is left.
    nonisolated(unsafe) let connection = connection
    DispatchQueue.global().async { natsConnection_Destroy(connection) }
  }

  /// A subject that no other process uses.
  static func newInbox() -> String {
    var random = SystemRandomNumberGenerator()
    return "_INBOX." + String(random.next(), radix: 36) + String(random.next(), radix: 36)
  }

  /// The most bytes of a message, headers included, that the server takes.
  var largestMessage: Int { Int(natsConnection_GetMaxPayload(connection)) }

  /// Ends the connection, after what was published has been sent. Requests that wait throw.
  func close() {
    let requests = state.withLock { state in
      state.isClosed = true
      defer { state.requests = [:] }
      return state.requests.values.map(\.done)
    }
    for done in requests { done(.failure(NATSFailure.closed)) }
    _ = natsConnection_FlushTimeout(connection, 1_000)
    natsConnection_Close(connection)
  }

  /// Sends a message. The servers do not confirm it.
  /// - Throws: ``NATSFailure/notConnected`` if nothing was sent. If the connection ends between the look at its status
  ///   and the library's lock, the library keeps the message all the same, and sends it on the next connection; its
  ///   buffer of one byte lets it keep no second one.
  func publish(
    _ subject: String, headers: [(name: String, value: String)] = [], _ bytes: [UInt8], reply: String? = nil
  ) throws {
    switch natsConnection_Status(connection) {
    case NATS_CONN_STATUS_CONNECTED: break
    case NATS_CONN_STATUS_CLOSED: throw NATSFailure.closed
    default: throw NATSFailure.notConnected
    }
    var message: OpaquePointer?
    let status = bytes.withUnsafeBufferPointer { bytes in
      // SAFETY: the library copies what it is given.
      bytes.withMemoryRebound(to: CChar.self) { bytes in
        natsMsg_Create(&message, subject, reply, bytes.baseAddress, Int32(bytes.count))
      }
    }
    try Self.check(status)
    defer { natsMsg_Destroy(message) }
    for header in headers { try Self.check(natsMsgHeader_Set(message, header.name, header.value)) }
    try Self.check(natsConnection_PublishMsg(connection, message))
  }

  /// Sends a message and waits for the answer.
  func request(
    _ subject: String, headers: [(name: String, value: String)] = [], _ bytes: [UInt8],
    within patience: Duration = .seconds(5)
  ) async throws -> NATSMessage {
    try await withCheckedThrowingContinuation { continuation in
      request(subject, headers: headers, bytes, within: patience) { continuation.resume(with: $0) }
    }
  }

  /// The same without a task: `done` is called once, on any thread; it must return soon.
  func request(
    _ subject: String, headers: [(name: String, value: String)] = [], _ bytes: [UInt8],
    within patience: Duration, _ done: @escaping Done
  ) {
    let number = state.withLock { state -> UInt64? in
      guard !state.isClosed else { return nil }
      state.lastNumber += 1
      state.requests[state.lastNumber] = Request(done: done, patience: patience, end: .now + patience)
      return state.lastNumber
    }
    guard let number else { return done(.failure(NATSFailure.closed)) }
    do {
      try publish(subject, headers: headers, bytes, reply: "\(inbox).\(number)")
    } catch {
      return finish(number, with: .failure(error))
    }
    sweepLater()
  }

  private func take(_ message: NATSMessage) {
    guard let number = UInt64(message.subject.dropFirst(inbox.count + 1)) else { return }
    finish(number, with: message.status == "503" ? .failure(NATSFailure.noResponders) : .success(message))
  }

  private func finish(_ number: UInt64, with result: Result<NATSMessage, any Error>) {
    let request = state.withLock { state in state.requests.removeValue(forKey: number) }
    request?.done(result)
  }

  private func sweepLater() {
    let isFirst = state.withLock { state in
      defer { state.isSweeping = true }
      return !state.isSweeping
    }
    if isFirst { scheduleSweep() }
  }

  private func scheduleSweep() {
    DispatchQueue.global(qos: .userInitiated).asyncAfter(deadline: .now() + Self.sweep) { [weak self] in
      self?.endLateRequests()
    }
  }

  private func endLateRequests() {
    let now = ContinuousClock.now
    let (late, goesOn) = state.withLock { state in
      let late = state.requests.filter { $0.value.end <= now }
      for number in late.keys { state.requests[number] = nil }
      state.isSweeping = !state.requests.isEmpty
      return (late.values, state.isSweeping)
    }
    for request in late { request.done(.failure(NATSFailure.timeout(request.patience))) }
    if goesOn { scheduleSweep() }
  }

  /// Calls the handler for each message, one after the other, on a thread of the library. It must return soon.
  /// - Parameter ended: Called once, after the last message of a subscription that was cancelled, or whose connection
  ///   was closed.
  func subscribe(
    _ subject: String, ended: @escaping @Sendable () -> Void = {},
    _ handle: @escaping @Sendable (NATSMessage) -> Void
  ) throws -> NATSSubscription {
    // SAFETY: balanced by one of the releases below.
    let handler = Unmanaged.passRetained(MessageHandler(handle: handle, ended: ended))
    var subscription: OpaquePointer?
    let status = natsConnection_Subscribe(
      &subscription, connection, subject,
      { _, _, message, handler in
        defer { natsMsg_Destroy(message) }
        // SAFETY: retained until the subscription's completion, after which no message comes.
        Unmanaged<MessageHandler>.fromOpaque(handler!).takeUnretainedValue().handle(NATSMessage(message!))
      }, handler.toOpaque())
    guard status == NATS_OK, let subscription else {
      // SAFETY: the library has not taken the handler.
      handler.release()
      throw NATSFailure.library(Self.text(status))
    }
    // Messages wait in memory for the handler; none is dropped.
    natsSubscription_SetPendingLimits(subscription, -1, -1)
    let completion = natsSubscription_SetOnCompleteCB(
      subscription,
      { handler in
        // SAFETY: the last use of the handler.
        Unmanaged<MessageHandler>.fromOpaque(handler!).takeRetainedValue().ended()
      }, handler.toOpaque())
    guard completion == NATS_OK else {
      // The connection has been closed meanwhile. The handler stays: nothing says when its last message has come.
      natsSubscription_Destroy(subscription)
      throw completion == NATS_INVALID_SUBSCRIPTION
        ? NATSFailure.closed : NATSFailure.library(Self.text(completion))
    }
    return NATSSubscription(subscription)
  }

  private static func check(_ status: natsStatus) throws {
    switch status {
    case NATS_OK: return
    case NATS_MAX_PAYLOAD: throw NATSFailure.tooLarge
    case NATS_CONNECTION_CLOSED: throw NATSFailure.closed
    // The buffer of one byte for what is published without a connection.
    case NATS_INSUFFICIENT_BUFFER: throw NATSFailure.notConnected
    default: throw NATSFailure.library(text(status))
    }
  }

  static func text(_ status: natsStatus) -> String { String(cString: natsStatus_GetText(status)) }
}

/// The end of a subscription is told by the library's completion, also when the connection is closed.
final class NATSSubscription: Sendable {
  // SAFETY: the library's functions take a subscription from any thread. It is destroyed in `deinit`.
  private nonisolated(unsafe) let subscription: OpaquePointer

  fileprivate init(_ subscription: OpaquePointer) { self.subscription = subscription }

  deinit { natsSubscription_Destroy(subscription) }

  /// Wants no more messages. Those that the server has sent still come, for five seconds at most.
  func drain() {
    if natsSubscription_DrainTimeout(subscription, 5_000) != NATS_OK {
      natsSubscription_Unsubscribe(subscription)
    }
  }
}

private final class MessageHandler: Sendable {
  let handle: @Sendable (NATSMessage) -> Void
  let ended: @Sendable () -> Void

  init(handle: @escaping @Sendable (NATSMessage) -> Void, ended: @escaping @Sendable () -> Void) {
    self.handle = handle
    self.ended = ended
  }
}

extension NATSMessage {
  /// Copies a message of the library.
  fileprivate init(_ message: OpaquePointer) {
    subject = String(cString: natsMsg_GetSubject(message))
    reply = natsMsg_GetReply(message).map { String(cString: $0) }
    let count = Int(natsMsg_GetDataLength(message))
    bytes =
      count == 0
      ? [] : [UInt8](UnsafeRawBufferPointer(start: natsMsg_GetData(message), count: count))
    func header(_ name: String) -> String? {
      var value: UnsafePointer<CChar>?
      guard natsMsgHeader_Get(message, name, &value) == NATS_OK, let value else { return nil }
      return String(cString: value)
    }
    id = header(NATSQueue.Header.id)
    token = header(NATSQueue.Header.token)
    wantsResult = header(NATSQueue.Header.wantsResult) != nil
    due = header(NATSQueue.Header.due).flatMap { Int64($0) }.map { WallTime(nanoseconds: $0) }
    status = header("Status")
    missing = status == nil ? nil : header("Nats-Pending-Messages").flatMap { Int($0) }
  }
}
