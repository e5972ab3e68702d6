import Glibc

/// One client: a read source, a write source while output is pending, and a serial queue on which all that
/// concerns it happens.
// SAFETY: everything that changes is OWNED BY `queue`, a serial queue; the methods called from outside
// submit to it. (Sources are not Sendable, but these are only used there, after `start`.)
final class Connection: @unchecked Sendable {
  private let descriptor: Int32
  private let counters: Counters
  private let queue = DispatchQueue(label: "echo.connection")
  private let whenClosed: @Sendable (Connection) -> Void
  private var state = ConnectionState()
  /// When input was last thrown away.
  private var heardAt = DispatchTime.now()
  private var outbox = Outbox()
  private var reading: SwitchedSource
  /// Made when output is pending for the first time, which may never be.
  private var writing: SwitchedSource?
  /// Sources that the kernel may still report events for.
  private var openSources = 1

  /// Takes over the descriptor, and closes it in the end.
  ///
  /// - Parameter whenClosed: called once, when the descriptor is closed.
  init(_ descriptor: Int32, _ counters: Counters, whenClosed: @escaping @Sendable (Connection) -> Void) {
    self.descriptor = descriptor
    self.counters = counters
    self.whenClosed = whenClosed
    reading = SwitchedSource(DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue))
  }

  func start() {
    // The handlers keep the connection alive; it ends when they are let go, after the cancel handler.
    reading.source.setEventHandler { self.readInput() }
    reading.source.setCancelHandler { self.sourceEnded() }
    reading.resume()
  }

  /// Echoes what has arrived, then closes.
  func stop() {
    queue.async {
      self.state.stop()
      if self.state.readsInput { self.readInput() }
    }
  }

  /// Closes, whatever is pending.
  func abort() {
    queue.async {
      if !self.outbox.isEmpty, !self.state.isClosed { self.counters.cutOff.add(1) }
      self.perform(self.state.failed())
    }
  }

  // MARK: On the queue

  private func readInput() {
    if state.isLingering { return discardInput() }
    // Otherwise a single read for an event: nobody should wait because somebody else sends a lot.
    repeat { readOnce() } while state.isStopping && state.readsInput
  }

  private func readOnce() {
    guard state.readsInput else { return }
    withUnsafeTemporaryAllocation(byteCount: 64 << 10, alignment: 16) { buffer in
      switch Socket.receive(descriptor, into: buffer) {
      case .bytes(let count): echo(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
      case .nothing: if state.isStopping { perform(state.inputEnded(pending: outbox.count)) }
      case .end: perform(state.clientEnded(pending: outbox.count))
      case .failed: fail()
      }
    }
  }

  /// Seconds of silence that end a connection whose output has ended.
  private static let silence = 1.0

  private func discardInput() {
    heardAt = .now()
    withUnsafeTemporaryAllocation(byteCount: 64 << 10, alignment: 16) { buffer in
      // Some for an event: the end of the grace must come in between.
      for _ in 0..<16 {
        switch Socket.receive(descriptor, into: buffer) {
        case .bytes: continue
        case .nothing: return
        case .end: return perform(state.clientEnded(pending: 0))
        // The client has closed without reading all.
        case .failed: return perform(state.failed())
        }
      }
    }
  }

  private func linger() {
    shutdown(descriptor, Int32(SHUT_WR))
    writing?.suspend()
    discardInput()
    waitForSilence()
  }

  private func waitForSilence() {
    let end = heardAt + Connection.silence
    queue.asyncAfter(deadline: end) {
      if self.heardAt + Connection.silence > end {
        if self.state.isLingering { self.waitForSilence() }
      } else {
        self.perform(self.state.lingered())
      }
    }
  }

  private func echo(_ bytes: UnsafeRawBufferPointer) {
    var rest = bytes
    if outbox.isEmpty {
      switch Socket.send(bytes, to: descriptor) {
      case .bytes(let count):
        counters.bytes.add(count)
        rest = UnsafeRawBufferPointer(rebasing: bytes[count...])
      case .failed:
        fail()
        return
      }
    }
    if !rest.isEmpty {
      outbox.append(rest)
      awaitRoom()
    }
    perform(state.outputChanged(pending: outbox.count))
  }

  private func writeOutput() {
    guard !state.isClosed else { return }
    switch outbox.flush(to: descriptor) {
    case .bytes(let count): counters.bytes.add(count)
    case .failed:
      fail()
      return
    }
    if outbox.isEmpty { writing?.suspend() }
    perform(state.outputChanged(pending: outbox.count))
  }

  /// Has the write source report room from now on. It must not otherwise: there is room nearly always.
  private func awaitRoom() {
    if writing == nil {
      let source = DispatchSource.makeWriteSource(fileDescriptor: descriptor, queue: queue)
      source.setEventHandler { self.writeOutput() }
      source.setCancelHandler { self.sourceEnded() }
      writing = SwitchedSource(source)
      openSources += 1
    }
    writing?.resume()
  }

  /// The client went away with data on the way, or the network did; there is nobody to tell.
  private func fail() {
    counters.failed.add(1)
    perform(state.failed())
  }

  private func perform(_ action: ConnectionState.Action) {
    switch action {
    case .none: break
    case .pauseInput:
      counters.pauses.add(1)
      reading.suspend()
    case .resumeInput:
      reading.resume()
      // Nothing may come any more that would wake the source.
      if state.isStopping { readInput() }
    case .endInput:
      reading.suspend()
    case .linger:
      reading.resume()
      linger()
    case .close:
      reading.cancel()
      writing?.cancel()
    }
  }

  /// Only when the last source is cancelled the kernel has let go of the descriptor. Closing it any earlier
  /// could take its number away from a connection that has got it meanwhile.
  private func sourceEnded() {
    openSources -= 1
    guard openSources == 0 else { return }
    close(descriptor)
    whenClosed(self)
  }
}
