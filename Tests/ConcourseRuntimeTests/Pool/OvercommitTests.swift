import Glibc
import Synchronization
import Testing

@testable import ConcourseRuntime

/// Queues that were promised a thread. The others' threads come at the pace of `Monitor.overrun`, which each test
/// measures beside: no test depends on how fast the machine is.
@Suite("Overcommit", .serialized)
struct OvercommitTests {
  enum Promise: Codable, Sendable, CaseIterable {
    case queue, concurrentQueue, target, innerTarget, globalQueue, attributeOverTarget

    func queue() -> DispatchQueue {
      func make(_ target: DispatchQueue?, isConcurrent: Bool = false, overcommits: Bool? = nil)
        -> DispatchQueue
      {
        DispatchQueue(
          cLabel: nil, isConcurrent: isConcurrent, qos: .unspecified, isInactive: false, target: target,
          mayChangeTarget: false, overcommits: overcommits)
      }
      return switch self {
      case .queue: make(nil, overcommits: true)
      case .concurrentQueue: make(nil, isConcurrent: true, overcommits: true)
      case .target: make(.overcommit(qos: .userInitiated))
      case .innerTarget: make(make(nil, overcommits: true))
      case .globalQueue: .overcommit(qos: .default)
      case .attributeOverTarget: make(.global(), overcommits: true)
      }
    }
  }

  @Test(
    "S144 items of overcommitting queues that spin until all have begun have their threads soon",
    arguments: Promise.allCases)
  func promised(_ promise: Promise) async {
    await #expect(processExitsWith: .success) { [promise] in
      let items = PoolSize.width + 4
      let kept = (0..<items).map { _ in promise.queue() }
      let soon = Self.meet(kept)
      // The overcommitting queues that exist give others no threads.
      let plain = Self.meet((0..<items).map { _ in DispatchQueue(label: "plain") })
      precondition(3 * soon < plain, "\(soon) ns, without the promise \(plain) ns")
      withExtendedLifetime(kept) {}
    }
  }

  @Test("S144 an attribute that denies a thread counts more than an overcommitting target")
  func denied() async {
    await #expect(processExitsWith: .success) {
      let queue = DispatchQueue(
        cLabel: nil, isConcurrent: false, qos: .unspecified, isInactive: false,
        target: .overcommit(qos: .utility), mayChangeTarget: false, overcommits: false)
      precondition(queue.targetQueue === DispatchQueue.global(qos: .utility))
      precondition(queue.level == .utility)
    }
  }

  /// The time until an item of each queue runs at once with all others.
  private static func meet(_ queues: [DispatchQueue]) -> UInt64 {
    let here = Atomic<Int>(0)
    let group = DispatchGroup()
    let begin = Clock.uptime()
    for queue in queues {
      queue.async(group: group) {
        here.wrappingAdd(1, ordering: .relaxed)
        while here.load(ordering: .relaxed) < queues.count { Processor.pause() }
      }
    }
    precondition(group.wait(timeout: .now() + .seconds(120)) == .success)
    return Clock.uptime() - begin
  }
}
