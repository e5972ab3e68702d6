import ExampleSupport
import Glibc

/// One client: a read source, a write source while output is pending, and the serial queue of both.
// SAFETY: the variables are OWNED BY `queue`, a serial queue; the methods called from outside submit to it. (Sources
// are not Sendable, but after `start` these are only used there.)
final class Connection: @unchecked Sendable {
  private let descriptor: Int32
  private let counters: Counters
  private let silence: Double
  private let queue = DispatchQueue(label: "echo.connection")
  private let whenClosed: @Sendable (Connection) -> Void
  private var state = ConnectionState()
  /// When input was last thrown away.
  private var lastInput = DispatchTime.now()
  private var outbox = Outbox()
  private var reading: SwitchedSource
  /// Made when output is pending for the first time.
  private var writing: SwitchedSource?
  /// Sources whose cancel handler has not run.
  private var openSources = 1

  /// Takes over the descriptor, and closes it at the end.
  ///
  /// - Parameters:
  ///   - silence: seconds without input after which the connection is closed once its output has ended.
  ///   - whenClosed: called once, when the descriptor is closed.
  init(
    _ descriptor: Int32, _ counters: Counters, silence: Double,
    whenClosed: @escaping @Sendable (Connection) -> Void
  ) {
    self.descriptor = descriptor
    self.counters = counters
    self.silence = silence
    self.whenClosed = whenClosed
    reading = SwitchedSource(DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue))
  }

  func start() {
    // The handlers retain the connection until the source releases them, after the cancel handler.
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
    // One read for each event: a client that sends a lot must not delay the others.
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

  private func echo(_ bytes: UnsafeRawBufferPointer) {
    var rest = bytes
    if outbox.isEmpty {
      guard let count = Socket.send(bytes, to: descriptor) else { return fail() }
      counters.bytes.add(count)
      rest = UnsafeRawBufferPointer(rebasing: bytes[count...])
    }
    if !rest.isEmpty {
      outbox.append(rest)
      awaitRoom()
    }
    perform(state.outputChanged(pending: outbox.count))
  }

  private func writeOutput() {
    guard !state.isClosed else { return }
    guard let count = outbox.flush(to: descriptor) else { return fail() }
    counters.bytes.add(count)
    if outbox.isEmpty { writing?.suspend() }
    perform(state.outputChanged(pending: outbox.count))
  }

  /// Resumes the write source. It is suspended while nothing is pending, because there is nearly always room.
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

  private func linger() {
    shutdown(descriptor, Int32(SHUT_WR))
    writing?.suspend()
    discardInput()
    waitForSilence()
  }

  private func discardInput() {
    lastInput = .now()
    withUnsafeTemporaryAllocation(byteCount: 64 << 10, alignment: 16) { buffer in
      // A bounded number of reads for each event, so that the end of the grace can interrupt.
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

  private func waitForSilence() {
    let end = lastInput + silence
    queue.asyncAfter(deadline: end) {
      if self.lastInput + self.silence > end {
        if self.state.isLingering { self.waitForSilence() }
      } else {
        self.perform(self.state.lingered())
      }
    }
  }

  /// The client has gone with data on the way, or the network has failed.
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
      // If no more input comes, no event would start this read.
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

  /// The kernel watches the descriptor until the last source is cancelled. If it were closed earlier, a new
  /// connection could get its number, and the sources would act on that.
  private func sourceEnded() {
    openSources -= 1
    guard openSources == 0 else { return }
    close(descriptor)
    whenClosed(self)
  }
}

/// Bytes that the kernel had no room for yet.
private struct Outbox {
  private var bytes: [UInt8] = []
  /// How many of `bytes` have been sent.
  private var sent = 0

  var count: Int { bytes.count - sent }
  var isEmpty: Bool { sent == bytes.count }

  mutating func append(_ more: UnsafeRawBufferPointer) { bytes += more }

  /// Sends as many bytes as the kernel takes.
  ///
  /// - Returns: how many it took, or nil if the connection is broken.
  mutating func flush(to descriptor: Int32) -> Int? {
    let count = bytes.withUnsafeBytes { buffer in
      Socket.send(UnsafeRawBufferPointer(rebasing: buffer[sent...]), to: descriptor)
    }
    guard let count else { return nil }
    sent += count
    if sent == bytes.count {
      // There may be thousands of connections: one without pending output keeps no memory for it.
      bytes = []
      sent = 0
    } else if sent > bytes.count / 2 {
      bytes.removeFirst(sent)
      sent = 0
    }
    return count
  }
}
