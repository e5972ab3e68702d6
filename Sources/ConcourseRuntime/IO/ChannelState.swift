internal import Glibc

/// What a channel has come to.
struct ChannelState {
  private enum Phase {
    case open
    /// Making the channel failed; the cleanup handler has been told.
    case failed(Int32)
    case closed
  }

  /// What becomes of an operation.
  enum Admission: Equatable {
    case admitted
    case refused(Int32)
  }

  /// What the caller must do next.
  enum Retirement: Equatable {
    case nothing
    /// The channel was open until now: it leaves its descriptor.
    case leave
  }

  private var phase = Phase.open

  var isClosed: Bool {
    switch phase {
    case .open, .failed: false
    case .closed: true
    }
  }

  /// An operation is submitted.
  func admission() -> Admission {
    switch phase {
    case .open: .admitted
    case .failed(let error): .refused(error)
    case .closed: .refused(ECANCELED)
    }
  }

  mutating func close() -> Retirement {
    switch phase {
    case .open:
      phase = .closed
      return .leave
    case .failed:
      phase = .closed
      return .nothing
    case .closed:
      return .nothing
    }
  }

  /// There is no descriptor for the channel.
  mutating func fail(_ error: Int32) -> Retirement {
    switch phase {
    case .open:
      phase = .failed(error)
      return .leave
    case .failed, .closed:
      return .nothing
    }
  }
}
