import Foundation
import Testing

@testable import ConcourseModel

extension LedgerTests {
  // MARK: Costs with known answers

  private static let plain = Costs(
    withinGroup: 20, acrossGroups: 100, acrossSockets: 200, step: 5, pause: 10, waking: 500,
    wakeLatency: 2_000, groupSize: 2, socketSize: 4, processors: 8)

  /// Two threads whose processors are `stride` apart add to one line in turn.
  private static func turns(_ count: Int, stride: Int) -> Double {
    var costs = plain
    costs.stride = stride
    let words = Words()
    let (result, _, nanoseconds) = Model.timed("turns", costs, countingFrom: 2, to: count) {
      // SAFETY: coroutines share one system thread.
      nonisolated(unsafe) var next = 0
      for thread in 0..<2 {
        Model.thread("turns") {
          while next < count {
            if next % 2 == thread {
              _ = words.add(1)
              next += 1
              Ledger.operation()
            } else {
              Processor.pause()
            }
          }
        }
      }
      Model.run()
    }
    #expect(result.failure == nil, "\(result)")
    return nanoseconds / Double(count - 2)
  }

  @Test func aMoveTakesAsLongAsItsDistance() {
    let times = [1, 2, 4].map { Self.turns(1_000, stride: $0) }
    for (time, move) in zip(times, [20.0, 100, 200]) {
      // A turn is a move, a step, and at most a pause until the other thread sees that it is its turn.
      #expect(time >= move && time <= move + 5 + 2 * 10, "\(times)")
    }
  }

  @Test func aLineServesOneMoveAtATime() {
    // Sixteen threads of a group that share one line are no quicker together than two.
    func rate(_ threads: Int) -> Double {
      var costs = Self.plain
      costs.groupSize = 64
      costs.socketSize = 64
      let words = Words()
      let (result, _, nanoseconds) = Model.timed("adds", costs, countingFrom: threads, to: threads * 100) {
        for _ in 0..<threads {
          Model.thread("adds") {
            for _ in 0..<100 {
              _ = words.add(1)
              Ledger.operation()
            }
          }
        }
        Model.run()
      }
      #expect(result.failure == nil, "\(result)")
      return Double(threads * 99) / nanoseconds
    }
    #expect(rate(16) <= rate(2) * 1.1, "\(rate(2)) \(rate(16))")
    #expect(rate(16) >= 1 / 25.0)
  }

  @Test func aWakeUpTakesItsTime() {
    let bed = Words()
    let costs = Self.plain
    let (result, _, nanoseconds) = Model.timed("wakes", costs, countingFrom: 1, to: 2) {
      Model.thread("sleeps") {
        bed.sleep()
        Ledger.operation()
      }
      Model.thread("wakes") {
        for _ in 0..<50 { Processor.pause() }
        Ledger.operation()
        bed.wake()
      }
      Model.run()
    }
    #expect(result.failure == nil, "\(result)")
    #expect(nanoseconds >= 2_500 && nanoseconds < 3_000, "\(nanoseconds)")
  }

  // MARK: The hindcast

  /// NVIDIA Grace: 72 cores at one cache, as published tables say it (LEDGER.md names them).
  private static func grace(_ processors: Int) -> Costs {
    Costs(
      withinGroup: 46, acrossGroups: 46, acrossSockets: 46, step: stepCost, pause: stepCost, waking: 480,
      wakeLatency: 2_340, groupSize: 72, processors: processors)
  }

  /// 64 cores in groups of 8.
  private static func epyc(_ processors: Int) -> Costs {
    Costs(
      withinGroup: 23, acrossGroups: 107, acrossSockets: 197, step: stepCost, pause: stepCost, waking: 480,
      wakeLatency: 2_340, groupSize: 8, socketSize: 64, processors: processors)
  }

  /// Our `sync` on an idle queue: 16.2 ns with three atomic operations.
  static let stepCost = 5.4

  /// Million items a second.
  private static func items(_ share: Int, steals: Bool = false, processors: Int = 72, each: Int = 40)
    -> Double
  {
    let pools = KernelPools(processors: processors, share: share, steals: steals)
    let total = processors * each
    let (result, _, nanoseconds) = Model.timed(
      "pools of \(share)", grace(processors), countingFrom: total / 4, to: total * 9 / 10
    ) { pools.start(itemsEach: each) }
    #expect(result.failure == nil, "\(result)")
    return Double(total * 9 / 10 - total / 4) / nanoseconds * 1_000
  }

  private static func milliseconds(shards: Int, spawners: Int) -> Double {
    let queue = InjectionQueue(workers: 64, shards: shards)
    let (result, _, nanoseconds) = Model.timed("\(shards) shards", epyc(64), countingFrom: 1) {
      queue.start(spawners: spawners)
    }
    #expect(result.failure == nil, "\(result)")
    return nanoseconds / 1_000_000
  }

  /// Our own rows of RESULTS.md, on two processors at one cache.
  private static let ownRows = [
    "async-f": 21.0, "global-async-f": 59.8, "group-async-f": 74.3, "hop-f": 69.0, "sync-f": 16.2,
    "sync-f-two-threads": 34.1, "semaphore-ping-pong": 64.6, "group-enter-leave": 21.6,
    "semaphore-signal-wait": 10.5,
  ]

  @Test func knownDesignsComeOutInTheirOrder() {
    let rates = [24, 8, 1].map { Self.items($0, processors: 24, each: 10) }
    #expect(rates[0] * 1.5 < rates[1] && rates[1] <= rates[2] * 1.05, "\(rates)")
  }

  /// Prints what LEDGER.md compares.
  @Test(.enabled(if: ProcessInfo.processInfo.environment["CONCOURSE_MODEL_LEDGER"] == "ledger"))
  func hindcast() throws {
    func line(_ name: String, _ computed: Double, _ published: Double, _ unit: String) {
      let factor = max(computed / published, published / computed)
      print(
        String(format: "%@: %.2f %@, published %.2f, factor %.2f", name, computed, unit, published, factor))
    }
    print("Hindcast")
    line("one locked pool, 72 processors", Self.items(72), 0.602, "million/s")
    line("shards of 8", Self.items(8), 2.94, "million/s")
    line("a queue each", Self.items(1), 3.43, "million/s")
    line("a queue each, stealing", Self.items(1, steals: true), 3.43, "million/s")
    for path in LedgerPath.all {
      guard let row = path.row, let measured = Self.ownRows[row.name] else { continue }
      var costs = Self.epyc(2)
      costs.groupSize = 2
      line(row.name, try path.time(threads: row.threads, costs), measured, "ns")
    }
    for (spawners, one, sharded) in [(1, 7.90, 7.90), (8, 32.51, 6.30), (64, 27.85, 5.04)] {
      line("injection, one mutex, \(spawners)", Self.milliseconds(shards: 1, spawners: spawners), one, "ms")
      line(
        "injection, 8 shards, \(spawners)", Self.milliseconds(shards: 8, spawners: spawners), sharded, "ms")
    }
  }
}
