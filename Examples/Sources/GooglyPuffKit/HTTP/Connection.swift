import Concourse
import Glibc

/// One client: a read source, a write source while output is pending, and a serial queue on which all that concerns it
/// happens. Requests are served one after the other.
// SAFETY: everything that changes is OWNED BY `queue`, a serial queue; the methods called from outside submit to it.
final class Connection: @unchecked Sendable {
  private enum State {
    case readingHead
    /// The body waits, unread, for a place.
    case waiting(Plan.Receiver)
    case readingBody(Plan.Receiver, missing: Int, Turnstile.Turn?)
    /// Others work on the answer.
    case answering
    /// The answer is on its way. No further request is read before it has left.
    case sending
    case streaming(ended: @Sendable () -> Void)
    /// All is said; what the client still sends is thrown away, as closing on unread input would reset the connection,
    /// and with it the answer.
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
  private var progress = DispatchTime.now()
  private var reading: SwitchedSource
  private var writing: SwitchedSource
  private let watchdog: any DispatchSourceTimer
  /// Sources that the kernel may still report events for.
  private var openSources = 2

  /// Takes over the descriptor, and closes it in the end.
  init(
    _ descriptor: Int32, turnstile: Turnstile, plan: @escaping @Sendable (RequestHead) -> Plan,
    whenClosed: @escaping @Sendable (Connection) -> Void
  ) {
    self.descriptor = descriptor
    self.turnstile = turnstile
    self.plan = plan
    self.whenClosed = whenClosed
    reading = SwitchedSource(DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue))
    writing = SwitchedSource(DispatchSource.makeWriteSource(fileDescriptor: descriptor, queue: queue))
    watchdog = DispatchSource.makeTimerSource(queue: queue)
  }

  func start() {
    // The handlers keep the connection alive until their sources are cancelled.
    reading.source.setEventHandler { self.receive() }
    reading.source.setCancelHandler { self.sourceEnded() }
    writing.source.setEventHandler { self.flush() }
    writing.source.setCancelHandler { self.sourceEnded() }
    watchdog.setEventHandler { self.checkProgress() }
    watchdog.schedule(
      deadline: .now() + .seconds(Limits.patience), repeating: .seconds(10), leeway: .seconds(1))
    watchdog.activate()
    reading.resume()
  }

  /// Sends an event if this is a stream.
  func push(_ make: @escaping @Sendable () -> [UInt8]) {
    queue.async {
      guard case .streaming = self.state else { return }
      // A page that does not listen comes back later, and is told everything then.
      guard self.pending.count - self.sent < Limits.unreadEvents else { return self.end() }
      self.send(make())
    }
  }

  // MARK: Input, on the queue

  private func receive() {
    withUnsafeTemporaryAllocation(byteCount: 64 << 10, alignment: 16) { buffer in
      // Once for an event: no client waits because another sends a lot.
      switch Socket.receive(descriptor, into: buffer) {
      case .bytes(let count):
        progress = .now()
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
      guard let head = try parser.nextHead() else { return }
      closesAfterAnswer = head.wantsClose
      switch plan(head) {
      case .answer(var response):
        // The rest of the request is not worth reading.
        if head.contentLength > 0 { response.closes = true }
        state = .answering
        answer(response)
      case .stream(let begin):
        state = .answering
        send(Response(type: Response.eventStream).head(closing: true))
        send(Array("retry: 1000\n\n".utf8))
        state = .streaming(ended: begin(EventStream(self)))
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
      self.progress = .now()
      self.state = .readingBody(receiver, missing: length, turn)
      self.body.reserveCapacity(length)
      self.reading.resume()
      if head.headers["expect"]?.lowercased() == "100-continue" {
        self.send(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8))
      }
      self.advance()
    }
    guard receiver.takesTurn else { return readBody(nil) }
    state = .waiting(receiver)
    reading.suspend()
    turnstile.enter { turn in
      self.queue.async {
        // Cut off meanwhile: the place is free again at once.
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
      progress = .now()
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
      guard case .bytes(let count) = result else { return end() }
      guard count > 0 else { return writing.resume() }
      progress = .now()
      sent += count
    }
    pending = []
    sent = 0
    // It must not report room that is not asked for: there is room nearly always.
    writing.suspend()
    guard case .sending = state else { return }
    reading.resume()
    if closesAfterAnswer {
      state = .lingering
      shutdown(descriptor, Int32(SHUT_WR))
      // A client that does not close may not keep the place of another.
      queue.asyncAfter(deadline: .now() + .seconds(2)) { self.end() }
    } else {
      state = .readingHead
      // More may have come together with the last request.
      queue.async { self.advance() }
    }
  }

  // MARK: The end, on the queue

  private func checkProgress() {
    switch state {
    // Others are to blame, or nothing needs to happen.
    case .waiting, .answering: return
    case .streaming where pending.isEmpty: return
    case .closed: return
    default: break
    }
    if progress + .seconds(Limits.patience) < .now() { end() }
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

  /// Only when the last source is cancelled the kernel has let go of the descriptor. Closing it any earlier could take
  /// its number away from a connection that has got it meanwhile.
  private func sourceEnded() {
    openSources -= 1
    guard openSources == 0 else { return }
    close(descriptor)
    whenClosed(self)
  }
}
