import ExampleSupport
import Glibc

/// One client: a read source, a write source that is active while output is pending, and a serial queue that owns its
/// state. Requests are served one after the other.
// SAFETY: the mutable state is OWNED BY `queue`, a serial queue; methods called from outside submit to it.
final class Connection: @unchecked Sendable {
  private enum State {
    case readingHead
    /// The body stays unread until the turnstile has a place.
    case waiting(Plan.Receiver)
    case readingBody(Plan.Receiver, missing: Int, Turnstile.Turn?)
    /// The answer is being prepared.
    case answering
    /// The answer is being sent. The next request is read after that.
    case sending
    case streaming(ended: @Sendable () -> Void)
    /// The answer was sent and the connection will close. Input is discarded until then: closing with unread input
    /// would reset the connection, and the client could lose the answer.
    case lingering
    case closed
  }

  private let descriptor: Int32
  private let queue = DispatchQueue(label: "googlypuff.connection")
  private let turnstile: Turnstile
  private let plan: @Sendable (RequestHead) -> Plan
  private let whenClosed: @Sendable (Connection) -> Void
  private var state = State.readingHead
  private var parser = RequestParser()
  private var body: [UInt8] = []
  private var closesAfterAnswer = false
  private var pending: [UInt8] = []
  private var sent = 0
  private var patience: Patience
  private var reading: SwitchedSource
  private var writing: SwitchedSource
  private let watchdog: any DispatchSourceTimer
  /// Sources whose cancel handler has not run yet.
  private var openSources = 2

  /// Takes ownership of the descriptor.
  init(
    _ descriptor: Int32, turnstile: Turnstile, patience: Patience = Patience(),
    plan: @escaping @Sendable (RequestHead) -> Plan, whenClosed: @escaping @Sendable (Connection) -> Void
  ) {
    self.descriptor = descriptor
    self.turnstile = turnstile
    self.patience = patience
    self.plan = plan
    self.whenClosed = whenClosed
    reading = SwitchedSource(DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue))
    writing = SwitchedSource(DispatchSource.makeWriteSource(fileDescriptor: descriptor, queue: queue))
    watchdog = DispatchSource.makeTimerSource(queue: queue)
  }

  func start() {
    // The handlers retain the connection until their sources are cancelled.
    reading.source.setEventHandler { self.receive() }
    reading.source.setCancelHandler { self.sourceEnded() }
    writing.source.setEventHandler { self.flush() }
    writing.source.setCancelHandler { self.sourceEnded() }
    watchdog.setEventHandler { self.checkProgress() }
    patience.renew()
    watchdog.schedule(deadline: patience.deadline, repeating: patience.limit, leeway: .milliseconds(100))
    watchdog.activate()
    reading.resume()
  }

  /// Sends an event if this is a stream.
  func push(_ event: [UInt8]) {
    queue.async {
      guard case .streaming = self.state else { return }
      // A page that does not read is disconnected. When it reconnects, it gets the whole state.
      guard self.pending.count - self.sent < Limits.unreadEvents else { return self.end() }
      self.send(event)
    }
  }

  /// Ends the connection if it is a stream.
  func endStream() {
    queue.async { if case .streaming = self.state { self.end() } }
  }

  // MARK: Input, on the queue

  private func receive() {
    withUnsafeTemporaryAllocation(byteCount: 64 << 10, alignment: 16) { buffer in
      // One read per event, so that a client that sends a lot does not delay the others.
      switch Socket.receive(descriptor, into: buffer) {
      case .bytes(let count):
        patience.earn(count)
        switch state {
        case .streaming, .lingering: break
        default:
          parser.append(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
          advance()
        }
      case .nothing: break
      case .end, .failed: end()
      }
    }
  }

  private func advance() {
    switch state {
    case .readingHead: readHead()
    case .readingBody(let receiver, var missing, let turn):
      let part = parser.takeBody(missing)
      body += part
      missing -= part.count
      state = .readingBody(receiver, missing: missing, turn)
      guard missing == 0 else { return }
      reading.suspend()
      state = .answering
      let whole = body
      body = []
      receiver.received(whole, turn) { response in self.queue.async { self.answer(response) } }
    default: break
    }
  }

  private func readHead() {
    do throws(RequestParser.Refusal) {
      guard let head = try parser.nextHead() else { return reading.resume() }
      // An answer to HEAD must not have a body, and ours has: the client would take it for the next answer.
      closesAfterAnswer = head.wantsClose || head.method == "HEAD"
      switch plan(head) {
      case .answer(var response):
        // The body is not read, so the connection cannot be used again.
        if head.contentLength > 0 { response.closes = true }
        state = .answering
        answer(response)
      case .stream(let begin):
        state = .answering
        send(Response(type: Response.eventStream).head(closing: true) + Array("retry: 1000\n\n".utf8))
        // If the client is gone already, `send` has ended the connection.
        guard case .answering = state else { return }
        state = .streaming(ended: begin(EventStream(self)))
        reading.resume()
      case .receive(let receiver): prepare(receiver, for: head)
      }
    } catch {
      state = .answering
      answer(.error(error.status, error.message, closes: true))
    }
  }

  private func prepare(_ receiver: Plan.Receiver, for head: RequestHead) {
    let length = head.contentLength
    guard length <= receiver.limit else {
      receiver.broken(receiver.tooLarge)
      state = .answering
      return answer(.error(413, receiver.tooLarge, closes: true))
    }
    let readBody: @Sendable (Turnstile.Turn?) -> Void = { turn in
      self.patience.renew()
      self.state = .readingBody(receiver, missing: length, turn)
      self.body.reserveCapacity(length)
      self.reading.resume()
      self.advance()
    }
    guard receiver.takesTurn else { return readBody(nil) }
    state = .waiting(receiver)
    reading.suspend()
    turnstile.enter { turn in
      self.queue.async {
        // If the connection ended meanwhile, releasing the turn frees the place.
        if case .waiting = self.state { readBody(turn) }
      }
    }
  }

  // MARK: Output, on the queue

  private func answer(_ response: Response) {
    guard case .answering = state else { return }
    closesAfterAnswer = closesAfterAnswer || response.closes
    state = .sending
    reading.suspend()
    send(response.head(closing: closesAfterAnswer) + response.body)
  }

  private func send(_ bytes: [UInt8]) {
    if sent == pending.count {
      pending = bytes
      sent = 0
      patience.renew()
    } else {
      pending.removeFirst(sent)
      sent = 0
      pending += bytes
    }
    flush()
  }

  private func flush() {
    while sent < pending.count {
      let result = pending.withUnsafeBytes { buffer in
        Socket.send(UnsafeRawBufferPointer(rebasing: buffer[sent...]), to: descriptor)
      }
      guard let count = result else { return end() }
      guard count > 0 else { return writing.resume() }
      patience.earn(count)
      sent += count
    }
    pending = []
    sent = 0
    // Nothing is pending. The source would fire continuously, as the socket is nearly always writable.
    writing.suspend()
    guard case .sending = state else { return }
    if closesAfterAnswer {
      state = .lingering
      reading.resume()
      shutdown(descriptor, Int32(SHUT_WR))
      // A client that never closes must not hold the connection for long.
      queue.asyncAfter(deadline: .now() + .seconds(2)) { self.end() }
    } else {
      state = .readingHead
      patience.renew()
      // The next request may have arrived with this one. No more is read before it is answered: a client that sends
      // requests without end would fill the memory.
      queue.async { self.advance() }
    }
  }

  // MARK: The end, on the queue

  private func checkProgress() {
    switch state {
    // The connection is not waiting for the client.
    case .waiting, .answering, .closed: return
    case .streaming where pending.isEmpty: return
    default: if patience.deadline < .now() { end() }
    }
  }

  private func end() {
    let last = state
    state = .closed
    switch last {
    case .closed: return
    case .waiting(let receiver), .readingBody(let receiver, _, _):
      receiver.broken("the connection broke off")
    case .streaming(let ended): ended()
    case .readingHead, .answering, .sending, .lingering: break
    }
    body = []
    watchdog.cancel()
    reading.cancel()
    writing.cancel()
  }

  /// Closes the descriptor after the cancel handlers of both sources have run. Closed any earlier, its number could be
  /// reused while a source still watches it.
  private func sourceEnded() {
    openSources -= 1
    guard openSources == 0 else { return }
    close(descriptor)
    whenClosed(self)
  }
}

/// How long a connection waits for its client: for `limit` without a byte, and not for one that is slower than
/// `Limits.slowest`. A client that sends or takes a byte now and then would hold its place for ever.
struct Patience: Sendable {
  let limit: DispatchTimeInterval
  private(set) var deadline = DispatchTime.now()

  init(limit: DispatchTimeInterval = .seconds(30)) { self.limit = limit }

  mutating func renew(at now: DispatchTime = .now()) { deadline = now + limit }

  /// Extends the deadline by the time that so many bytes may take, up to the full patience.
  mutating func earn(_ count: Int, at now: DispatchTime = .now()) {
    deadline = min(deadline + .nanoseconds(count * 1_000_000_000 / Limits.slowest), now + limit)
  }
}

/// A stream of server-sent events to a page.
package struct EventStream: Sendable {
  private let connection: Connection

  init(_ connection: Connection) { self.connection = connection }

  var id: ObjectIdentifier { ObjectIdentifier(connection) }

  func push(_ event: [UInt8]) { connection.push(event) }

  func end() { connection.endStream() }
}
