/// Where a connection stands. The transitions decide, and say what is to be done; `Connection` does it.
struct ConnectionState {
  private enum State {
    /// Input is read, and echoed at once or put aside.
    case flowing
    /// The client sends without reading: no more input until it has taken enough output.
    case paused
    /// No more input comes or is wanted; pending output still has to leave.
    case finishing
    case closed
  }

  /// What is to be done about input.
  enum Action {
    case none
    case pauseInput
    case resumeInput
    /// Read no more, for good.
    case endInput
    /// Put everything away.
    case close
  }

  /// Pending bytes at which input is paused, and at which it goes on. The distance between the two keeps
  /// a slow client from switching to and fro with each packet.
  static let highWater = 256 << 10
  static let lowWater = 64 << 10

  private var state = State.flowing
  /// Once nothing more has come in, it is the end.
  private(set) var isStopping = false

  var readsInput: Bool { state == .flowing }
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
      state = .closed
      return .close
    case .closed:
      return .none
    }
  }

  /// The client sends no more, or we want no more from it.
  mutating func inputEnded(pending: Int) -> Action {
    switch state {
    case .flowing, .paused:
      state = pending > 0 ? .finishing : .closed
      return pending > 0 ? .endInput : .close
    case .finishing, .closed:
      return .none
    }
  }

  /// The server stops: what has arrived so far is still echoed.
  mutating func stop() { isStopping = true }

  /// The connection is broken, or has had enough time.
  mutating func failed() -> Action {
    switch state {
    case .flowing, .paused, .finishing:
      state = .closed
      return .close
    case .closed:
      return .none
    }
  }
}
