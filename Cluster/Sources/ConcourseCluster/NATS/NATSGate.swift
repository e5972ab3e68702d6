internal import FoundationEssentials
internal import Synchronization

// Suspension.
//
// Whether a queue is suspended is the last message of a subject in the stream of the failed items, which keeps one for
// each subject. The processes with workers look at it each second, and at once when they see a change pass by. A worker
// starts an item only if such a look has begun not long ago and found the queue running. So suspension needs no list of
// workers: one that cannot look starts nothing either, after `memory`. That time is longer than the servers mostly need
// to choose another leader of the stream.

/// What this process knows of the suspension of a queue.
final class NATSGate: Sendable {
  private struct State {
    var isSuspended = false
    /// When the last look began that had an answer.
    var look: ContinuousClock.Instant?
    /// What is called when the queue goes on. There is an entry for each worker.
    var workers: [Int: @Sendable () -> Void] = [:]
    var lastWorker = 0
    var looker: Task<Void, Never>?
  }

  private static let interval = Duration.seconds(1)
  static let memory = Duration.seconds(10)

  private let state = Mutex(State())

  /// Whether an item may start now.
  var isOpen: Bool {
    state.withLock { state in
      guard let look = state.look else { return false }
      return !state.isSuspended && look + Self.memory > .now
    }
  }

  /// Begins to look for another worker, once it is known whether the queue is suspended.
  func add(for queue: NATSQueue, goesOn: @escaping @Sendable () -> Void) async throws -> Int {
    try await look(for: queue)
    return try state.withLock { state throws in
      if state.looker == nil {
        let hint = Hint()
        let subscription = try queue.connection.subscribe(queue.names.suspensionSubject) { _ in hint.give() }
        state.looker = Task { [weak queue] in
          defer { withExtendedLifetime(subscription) {} }
          // The change may pass by before it can be read, so a hint is followed by looks in short order.
          var pauses = Pauses(hint, longest: Self.interval)
          while let queue {
            // A look that fails leaves what is known until that is too old.
            try? await self.look(for: queue)
            do { try await pauses.wait() } catch { return }
          }
        }
      }
      state.lastWorker += 1
      state.workers[state.lastWorker] = goesOn
      return state.lastWorker
    }
  }

  func remove(_ worker: Int) {
    let looker = state.withLock { state -> Task<Void, Never>? in
      state.workers[worker] = nil
      guard state.workers.isEmpty else { return nil }
      defer { state.looker = nil }
      return state.looker
    }
    looker?.cancel()
  }

  private func look(for queue: NATSQueue) async throws {
    let start = ContinuousClock.now
    let isSuspended = try await queue.readSuspension()
    let goOn = state.withLock { state -> [@Sendable () -> Void] in
      // Looks may overtake each other.
      if let look = state.look, look > start { return [] }
      defer { (state.isSuspended, state.look) = (isSuspended, start) }
      return state.isSuspended && !isSuspended ? Array(state.workers.values) : []
    }
    for goesOn in goOn { goesOn() }
  }
}

extension NATSQueue {
  private static var yes: [UInt8] { Array("yes".utf8) }

  func readSuspension() async throws -> Bool {
    let stored = try await stored(in: names.failedStream, NATSGet(last_by_subj: names.suspensionSubject))
    return stored?.message.data == Data(Self.yes)
  }

  func isSuspended() async throws -> Bool { try await asClusterErrors { try await readSuspension() } }

  func setSuspended(_ isSuspended: Bool) async throws {
    try await asClusterErrors {
      try await submit(isSuspended ? Self.yes : [], to: names.suspensionSubject, [], id: "suspension")
    }
  }
}
