import Glibc
import Synchronization

/// Says at the end of the test process that none of its explorations had the token of the environment: each has then run
/// its usual schedules, and a test that passes has not repeated anything.
enum UnusedToken {
  private enum State {
    case unseen, foreign, used
  }
  private static let state = Mutex(State.unseen)

  static func noteUse() { state.withLock { $0 = .used } }

  /// An exploration has come across the token of another one.
  static func noteForeign() {
    let isFirst = state.withLock { state in
      defer { if state == .unseen { state = .foreign } }
      return state == .unseen
    }
    guard isFirst else { return }
    atexit {
      guard UnusedToken.state.withLock({ $0 == .foreign }) else { return }
      let line = Array(
        "\(TestExploration.replayVariable): none of the explorations that ran has this token\n".utf8)
      write(STDERR_FILENO, line, line.count)
    }
  }
}
