internal import Concourse
internal import Synchronization

/// Ends the pause of a task that looks at something again and again. A hint may be lost, or come too early, so a pause
/// has an end of its own.
final class Hint: Sendable {
  private struct State {
    var isGiven = false
    var lastPause = 0
    var waiter: (pause: Int, continuation: CheckedContinuation<Void, Never>)?
  }

  private let state = Mutex(State())

  /// The pause ends, or the next one will at once.
  func give() {
    let waiter = state.withLock { state in
      defer { state.waiter = nil }
      if state.waiter == nil { state.isGiven = true }
      return state.waiter
    }
    waiter?.continuation.resume()
  }

  /// Waits for a hint, for some time at most. One task at a time.
  /// - Returns: Whether there was a hint.
  func pause(atMost time: Duration) async throws -> Bool {
    let pause = state.withLock { state in
      state.lastPause += 1
      return state.lastPause
    }
    let isOver = Mutex(false)
    let end: @Sendable () -> Void = { [self] in
      let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
        guard state.waiter?.pause == pause else { return nil }
        isOver.withLock { $0 = true }
        defer { state.waiter = nil }
        return state.waiter?.continuation
      }
      waiter?.resume()
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let goesOn = state.withLock { state in
          // The handler of a cancellation may have found no waiter.
          if state.isGiven || Task.isCancelled {
            state.isGiven = false
            return true
          }
          state.waiter = (pause, continuation)
          return false
        }
        if goesOn { return continuation.resume() }
        DispatchQueue.global(qos: .userInitiated).asyncAfter(
          deadline: .now() + time.asInterval, execute: end)
      }
    } onCancel: {
      end()
    }
    try Task.checkCancellation()
    return !isOver.withLock { $0 }
  }
}

/// The pauses between looks at something that is not told reliably: short ones after a hint, growing ones without.
struct Pauses {
  private static let shortest = Duration.milliseconds(10)

  private let hint: Hint
  private let longest: Duration
  private var next = shortest

  init(_ hint: Hint, longest: Duration = .seconds(2)) {
    self.hint = hint
    self.longest = longest
  }

  mutating func wait() async throws {
    next = try await hint.pause(atMost: next) ? Self.shortest : min(next * 2, longest)
  }
}
