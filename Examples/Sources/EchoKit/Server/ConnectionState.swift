/// Where a connection stands. The transitions decide, and say what is to be done; `Connection` does it.
struct ConnectionState {
  private enum State {
    /// Input is read, and echoed at once or put aside.
    case flowing
    /// The client sends without reading: no more input until it has taken enough output.
    case paused
    /// No more input comes or is wanted; pending output still has to leave.
    case finishing
    /// All output has left, and its end. What the client still sends is thrown away until it ends, too: to close on
    /// unread input would reset the connection, and the client might lose output that it has not read yet.
    case lingering
    case closed
  }

  /// What is to be done about input.
  enum Action {
    case none
    case pauseInput
    case resumeInput
    /// Read no more, for good.
    case endInput
    /// End the output, and throw away what comes in.
    case linger
    /// Put everything away.
    case close
  }

  /// Pending bytes at which input is paused, and at which it goes on. The distance between the two keeps
  /// a slow client from switching to and fro with each packet.
  static let highWater = 256 << 10
  static let lowWater = 64 << 10

  private var state = State.flowing
  /// Whether the client has ended its output.
  private var hasEnded = false
  /// Once nothing more has come in, it is the end.
  private(set) var isStopping = false

  var readsInput: Bool { state == .flowing }
  var isLingering: Bool { state == .lingering }
  var isClosed: Bool { state == .closed }

  /// Output was put aside or has left; so much is pending now.
  mutating func outputChanged(pending: Int) -> Action {
    switch state {
    case .flowing:
      guard pending > ConnectionState.highWater else { return .none }
      state = .paused
      return .pauseInput
    case .paused:
      guard pending < ConnectionState.lowWater else { return .none }
      state = .flowing
      return .resumeInput
    case .finishing:
      guard pending == 0 else { return .none }
      return finished()
    case .lingering, .closed:
      return .none
    }
  }

  /// The client sends no more.
  mutating func clientEnded(pending: Int) -> Action {
    hasEnded = true
    guard state == .lingering else { return inputEnded(pending: pending) }
    state = .closed
    return .close
  }

  /// We want no more from the client.
  mutating func inputEnded(pending: Int) -> Action {
    switch state {
    case .flowing, .paused:
      guard pending > 0 else { return finished() }
      state = .finishing
      return .endInput
    case .finishing, .lingering, .closed:
      return .none
    }
  }

  private mutating func finished() -> Action {
    state = hasEnded ? .closed : .lingering
    return hasEnded ? .close : .linger
  }

  /// The client has been silent for long enough.
  mutating func lingered() -> Action {
    guard state == .lingering else { return .none }
    return failed()
  }

  /// The server stops: what has arrived so far is still echoed.
  mutating func stop() { isStopping = true }

  /// The connection is broken, or has had enough time.
  mutating func failed() -> Action {
    switch state {
    case .flowing, .paused, .finishing, .lingering:
      state = .closed
      return .close
    case .closed:
      return .none
    }
  }
}
