/// The state of a connection. A transition decides and returns what `Connection` must do.
struct ConnectionState {
  private enum State {
    /// Input is read, and echoed or put aside.
    case flowing
    /// The client sends without reading: no more input is read until it has taken enough output.
    case paused
    /// No more input is read; pending output still has to leave.
    case finishing
    /// All output has left, and its end. What the client still sends is thrown away until it ends, too: to close with
    /// unread input would reset the connection, and the client could lose output that it has not read yet.
    case lingering
    case closed
  }

  enum Action {
    case none
    case pauseInput
    case resumeInput
    /// Read no more, for good.
    case endInput
    /// End the output, and throw input away.
    case linger
    case close
  }

  /// Pending bytes at which input is paused, and at which it is resumed. The distance keeps a slow client from
  /// switching back and forth with each packet.
  static let highWater = 256 << 10
  static let lowWater = 64 << 10

  private var state = State.flowing
  /// Whether the client has ended its output.
  private var hasEnded = false
  /// Input ends as soon as none is there.
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

  /// The server wants no more from the client.
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
    state == .lingering ? failed() : .none
  }

  /// The server stops: what has arrived so far is still echoed.
  mutating func stop() { isStopping = true }

  /// The connection is broken, or its time is over.
  mutating func failed() -> Action {
    if state == .closed { return .none }
    state = .closed
    return .close
  }
}
