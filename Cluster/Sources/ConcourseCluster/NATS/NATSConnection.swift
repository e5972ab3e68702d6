internal import CNATS
internal import Concourse
internal import Glibc
internal import Synchronization

/// Why a request got no answer.
enum NATSFailure: Error, CustomStringConvertible {
  case timeout(Duration)
  /// No server listens on the subject: its stream or consumer has no leader, or does not exist.
  case noResponders
  /// The connection is being made again. Nothing was sent.
  case notConnected
  /// The message had to wait for its sending until its deadline had passed. Nothing was sent.
  case late
  /// An acknowledgement of a batch that the servers may have or not.
  case unconfirmed
  /// The server that answered may not be the leader any more.
  case unconfirmedLeader
  case tooLarge
  case closed
  case library(String)

  var description: String {
    switch self {
    case .timeout(let time): "no answer within \(time)"
    case .noResponders: "no server answers for it: JetStream is off there, or has no leader now"
    case .notConnected: "there is no connection to a server now"
    case .late: "it could not be sent before its deadline"
    case .unconfirmed: "the acknowledgement was not confirmed"
    case .unconfirmedLeader: "the leader that answers has not heard from a majority of the servers"
    case .tooLarge: "the message is too large"
    case .closed: "the connection is closed"
    case .library(let text): text
    }
  }
}

/// One connection of the client library, with requests that tasks await.
///
/// The connection is made again by itself (`NATSLink.swift`). What is published meanwhile fails: the library would keep it
/// and send it after the deadlines have passed for which it was meant. All requests share one inbox. A request ends in one
/// of three ways: its answer, its time, the end of the connection; the one that takes it out of `State.requests` calls
/// `done`.
///
/// The library has one lock, which its threads hold while they write to the socket. So of the threads with a request, the
/// first one hands over those of all, and the others go their way. It hands over one batch. A thread of the pool goes on
/// with what came meanwhile, so the first thread gets back to its own work, which may be the next beat.
final class NATSConnection: Sendable {
  typealias Done = @Sendable (Result<NATSMessage, any Error>) -> Void

  private struct Request {
    let done: Done
    let patience: Duration
    let end: ContinuousClock.Instant
  }

  /// A request, or another message, that was not handed to the library yet.
  private struct Letter {
    enum Kind {
      case request(number: UInt64)
      /// Without an answer. Called with what kept the library from taking it.
      case alone(@Sendable ((any Error)?) -> Void)
    }

    let kind: Kind
    let subject: String
    let headers: [(name: String, value: String)]
    let bytes: [UInt8]
    /// When it is too late to send it.
    let end: ContinuousClock.Instant
  }

  private struct State {
    var isClosed = false
    var lastNumber: UInt64 = 0
    var lastName: UInt64 = 0
    var requests: [UInt64: Request] = [:]
    var letters: [Letter] = []
    /// Whether a thread hands letters to the library.
    var isPosting = false
    var isSweeping = false
  }

  /// How often requests are checked for their time, while there are any.
  private static let sweep = DispatchTimeInterval.milliseconds(250)

  let link: NATSLink
  /// What the subject of each answer begins with.
  private let inbox: String
  private let state = Mutex(State())
  private let answers = Mutex<NATSSubscription?>(nil)

  /// - Parameter connect: Makes a connection of the library. It blocks the thread.
  init(_ connect: @escaping @Sendable () throws -> OpaquePointer) throws {
    link = try NATSLink(connect)
    inbox = Self.newInbox()
    let subscription = try link.subscribe(inbox + ".*") { [weak self] message in
      self?.take(message)
    }
    answers.withLock { $0 = subscription }
  }

  /// A subject that no other process uses.
  static func newInbox() -> String {
    var random = SystemRandomNumberGenerator()
    return "_INBOX." + String(random.next(), radix: 36) + String(random.next(), radix: 36)
  }

  /// A name that no other connection makes: that of the inbox, and a number.
  func newName() -> String {
    let number = state.withLock { state in
      state.lastName += 1
      return state.lastName
    }
    return "\(inbox).\(number)"
  }

  /// The most bytes of a message, headers included, that the server takes.
  var largestMessage: Int {
    let handle = link.handle
    return withExtendedLifetime(handle) { Int(natsConnection_GetMaxPayload(handle.pointer)) }
  }

  /// Ends the connection, after what was published has been sent. Requests that wait throw.
  func close() {
    let requests = state.withLock { state in
      state.isClosed = true
      defer { state.requests = [:] }
      return state.requests.values.map(\.done)
    }
    for done in requests { done(.failure(NATSFailure.closed)) }
    link.close()
  }

  /// Sends a message. The servers do not confirm it.
  /// - Throws: ``NATSFailure/notConnected`` if nothing was sent. If the connection ends between the look at its status
  ///   and the library's lock, the library keeps the message all the same, and sends it on the next connection; its
  ///   buffer of one byte lets it keep no second one.
  func publish(
    _ subject: String, headers: [(name: String, value: String)] = [], _ bytes: [UInt8], reply: String? = nil
  ) throws {
    let handle = link.handle
    // The link may have another one meanwhile.
    defer { withExtendedLifetime(handle) {} }
    let connection = handle.pointer
    switch natsConnection_Status(connection) {
    case NATS_CONN_STATUS_CONNECTED: break
    case NATS_CONN_STATUS_CLOSED:
      link.replace(handle)
      throw link.isClosed ? NATSFailure.closed : NATSFailure.notConnected
    default: throw NATSFailure.notConnected
    }
    try bytes.withUnsafeBytes { buffer in
      // SAFETY: the library copies what it is given.
      let (start, count) = (buffer.baseAddress, Int32(buffer.count))
      if headers.isEmpty {
        return try Self.check(
          reply.map { natsConnection_PublishRequest(connection, subject, $0, start, count) }
            ?? natsConnection_Publish(connection, subject, start, count))
      }
      var message: OpaquePointer?
      try Self.check(
        natsMsg_Create(&message, subject, reply, start?.assumingMemoryBound(to: CChar.self), count))
      defer { natsMsg_Destroy(message) }
      for header in headers { try Self.check(natsMsgHeader_Set(message, header.name, header.value)) }
      try Self.check(natsConnection_PublishMsg(connection, message))
    }
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
  /// - Parameter deadline: It is not sent later than that, if that is sooner than the end of the patience.
  func request(
    _ subject: String, headers: [(name: String, value: String)] = [], _ bytes: [UInt8],
    within patience: Duration, before deadline: ContinuousClock.Instant? = nil, _ done: @escaping Done
  ) {
    let end = ContinuousClock.now + patience
    let (isClosed, posts, isFirst) = state.withLock { state in
      if state.isClosed { return (true, false, false) }
      state.lastNumber += 1
      state.requests[state.lastNumber] = Request(done: done, patience: patience, end: end)
      state.letters.append(
        Letter(
          kind: .request(number: state.lastNumber), subject: subject, headers: headers, bytes: bytes,
          end: min(end, deadline ?? end)))
      defer { (state.isPosting, state.isSweeping) = (true, true) }
      return (false, !state.isPosting, !state.isSweeping)
    }
    if isClosed { return done(.failure(NATSFailure.closed)) }
    if isFirst { scheduleSweep() }
    if posts { post() }
  }

  /// Sends a message without an answer, like the requests of other threads.
  /// - Parameters:
  ///   - deadline: It is not sent later than that.
  ///   - done: Called once, when the library has it or has refused it, on any thread; it must return soon.
  func send(
    _ subject: String, _ bytes: [UInt8], before deadline: ContinuousClock.Instant,
    _ done: @escaping @Sendable ((any Error)?) -> Void
  ) {
    let posts = state.withLock { state in
      state.letters.append(
        Letter(kind: .alone(done), subject: subject, headers: [], bytes: bytes, end: deadline))
      defer { state.isPosting = true }
      return !state.isPosting
    }
    if posts { post() }
  }

  /// Hands the letters that wait to the library. Only one thread at a time does that.
  private func post() {
    let letters = state.withLock { state in
      defer { state.letters = [] }
      return state.letters
    }
    for letter in letters {
      var failure: (any Error)?
      do {
        // It had to wait: this process was stopped, or the library has waited for the network.
        if letter.end <= .now { throw NATSFailure.late }
        var reply: String?
        if case .request(let number) = letter.kind { reply = "\(inbox).\(number)" }
        try publish(letter.subject, headers: letter.headers, letter.bytes, reply: reply)
      } catch {
        failure = error
      }
      switch (letter.kind, failure) {
      case (.alone(let done), _): done(failure)
      case (.request(let number), let failure?): finish(number, with: .failure(failure))
      case (.request, nil): break
      }
    }
    let goesOn = state.withLock { state in
      state.isPosting = !state.letters.isEmpty
      return state.isPosting
    }
    if goesOn { DispatchQueue.global(qos: .userInitiated).async { self.post() } }
  }

  private func take(_ message: OpaquePointer) {
    let subject = natsMsg_GetSubject(message)!
    // SAFETY: the subscription's subject says that it begins with the inbox and a dot.
    let number = strtoull(subject + inbox.utf8.count + 1, nil, 10)
    let answer = NATSMessage(answer: message)
    finish(number, with: answer.status == "503" ? .failure(NATSFailure.noResponders) : .success(answer))
  }

  private func finish(_ number: UInt64, with result: Result<NATSMessage, any Error>) {
    let request = state.withLock { state in state.requests.removeValue(forKey: number) }
    request?.done(result)
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
  /// - Parameter ended: Called once, after the last message of a subscription that was cancelled, or when the connection
  ///   was closed.
  func subscribe(
    _ subject: String, ended: @escaping @Sendable () -> Void = {},
    _ handle: @escaping @Sendable (NATSMessage) -> Void
  ) throws -> NATSSubscription {
    try link.subscribe(subject, ended: ended) { message in handle(NATSMessage(message)) }
  }

  private static func check(_ status: natsStatus) throws {
    switch status {
    case NATS_OK: return
    case NATS_MAX_PAYLOAD: throw NATSFailure.tooLarge
    // The buffer of one byte for what is published without a connection; and one that the library has just given up.
    case NATS_INSUFFICIENT_BUFFER, NATS_CONNECTION_CLOSED: throw NATSFailure.notConnected
    default: throw NATSFailure.library(text(status))
    }
  }

  static func text(_ status: natsStatus) -> String { String(cString: natsStatus_GetText(status)) }
}
