import Concourse
import ConcourseCluster
import Synchronization

/// A cluster queue.
final class Ours: Side {
  private let queue: ClusterQueue<Item>
  private let registration = Mutex<ClusterRegistration?>(nil)

  init(_ servers: [String]) async throws {
    queue = ClusterQueue(
      label: "benchmark", attributes: .concurrent, on: try await Cluster.connect(servers: servers))
  }

  func submit(_ count: Int) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for first in 0..<inFlight {
        group.addTask { [queue] in
          for number in stride(from: first, to: count, by: inFlight) {
            try await queue.async(Item(number: number, time: now()))
          }
        }
      }
      try await group.waitForAll()
    }
  }

  func submit(_ count: Int, every interval: UInt64) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      try await pace(count, every: interval) { number in
        group.addTask { [queue] in try await queue.async(Item(number: number, time: now())) }
      }
      try await group.waitForAll()
    }
  }

  func run(_ count: Int) async throws -> [UInt64] {
    let delays = Mutex<[UInt64]>([])
    let done = AsyncStream<Void>.makeStream()
    let made = try await queue.handle(width: inFlight) { item in
      let delay = now() - item.time
      let isLast = delays.withLock { delays in
        delays.append(delay)
        return delays.count == count
      }
      if isLast { done.continuation.finish() }
    }
    registration.withLock { $0 = made }
    for await _ in done.stream {}
    made.cancel()
    return delays.withLock { $0 }
  }

  /// The servers forget within two seconds that the worker had asked for items.
  func rest() async { await registration.withLock { $0 }?.drained() }
}
