import Concourse
import ConcourseCluster
import Synchronization

/// Values in the order in which they came, and tasks that wait for them.
final class Log<Value: Sendable>: Sendable {
  private struct State {
    var values: [Value] = []
    var lastWaiter = 0
    var waiters: [Int: (count: Int, continuation: CheckedContinuation<Void, Never>)] = [:]
  }

  private let state = Mutex(State())

  var all: [Value] { state.withLock { $0.values } }

  func append(_ value: Value) {
    let ready = state.withLock { state in
      state.values.append(value)
      let ready = state.waiters.filter { $0.value.count <= state.values.count }
      for waiter in ready.keys { state.waiters[waiter] = nil }
      return ready.values
    }
    for waiter in ready { waiter.continuation.resume() }
  }

  /// Waits until there are as many values, and returns them. The time limit of the test ends it otherwise.
  @discardableResult
  func until(_ count: Int) async -> [Value] {
    let waiter = state.withLock { state in
      state.lastWaiter += 1
      return state.lastWaiter
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isReady = state.withLock { state in
          // The handler may have been called before there was a waiter.
          if state.values.count >= count || Task.isCancelled { return true }
          state.waiters[waiter] = (count, continuation)
          return false
        }
        if isReady { continuation.resume() }
      }
    } onCancel: {
      state.withLock { state in state.waiters.removeValue(forKey: waiter) }?.continuation.resume()
    }
    return all
  }
}

/// Opens once; tasks wait for that.
final class Gate: Sendable {
  private let opened = Log<Bool>()
  func open() { opened.append(true) }
  func pass() async { await opened.until(1) }
}

/// The number of items that run, and the most that ran at the same time.
final class Gauge: Sendable {
  private let state = Mutex((now: 0, most: 0))
  var most: Int { state.withLock { $0.most } }
  var now: Int { state.withLock { $0.now } }
  func enter() {
    state.withLock { state in
      state.now += 1
      state.most = max(state.most, state.now)
    }
  }
  func leave() { state.withLock { $0.now -= 1 } }
}

/// What handlers of the tests throw.
struct Failed: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}

/// Asks again until the condition holds. The time limit of the test ends it otherwise.
func eventually(_ condition: () async throws -> Bool) async throws {
  while try await !condition() { try await Task.sleep(for: .milliseconds(20)) }
}

/// The engines on which each test of the interface runs.
enum EngineKind: CaseIterable, Sendable {
  case embedded
  /// Three servers.
  case servers

  /// A cluster, or a connection to it, of its own.
  func cluster() async throws -> Cluster {
    switch self {
    case .embedded: .embedded()
    case .servers:
      try await Cluster.connect(servers: TestServers.shared.value.addresses, timeout: .seconds(300))
    }
  }

  /// A label that no other test uses.
  func label(_ name: String = #function) -> String {
    "\(name.prefix { $0 != "(" }).\(Self.next.wrappingAdd(1, ordering: .relaxed).newValue)"
  }

  // ORDERING: relaxed; only the number counts.
  private static let next = Atomic(0)
}
