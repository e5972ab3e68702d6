import Testing

@testable import ConcourseRuntime

/// When a worker submits an item without waking another. The tests pass the times.
@Suite struct DeferralTests {
  /// A simulated worker: each entry takes some nanoseconds and submits an item.
  private final class Worker {
    let deferral = Deferral()
    private var progress: UInt32 = 0
    private var now: UInt64 = 1

    /// - Returns: whether the last entry's item was deferred.
    func run(_ count: Int, of nanoseconds: UInt64) -> Bool {
      var isDeferred = false
      for _ in 0..<count {
        deferral.settle()
        progress += 1
        now += nanoseconds
        isDeferred = submit()
      }
      return isDeferred
    }

    func submit() -> Bool { deferral.defers(progress: progress, now: now) }

    func sleep(_ nanoseconds: UInt64) {
      deferral.runDry(progress: progress, now: now)
      now += nanoseconds
    }

    var isRecent: Bool { deferral.isRecent(progress: progress) }
  }

  private static let group = Int(Spin.measuredEntries)

  @Test func nothingIsDeferredBeforeEntriesWereMeasured() {
    let worker = Worker()
    #expect(!worker.submit())
    #expect(!worker.run(Self.group - 2, of: 100))
    #expect(worker.run(1, of: 100))
  }

  @Test func longEntriesDeferNothing() {
    #expect(!Worker().run(1000, of: 20_000))
    #expect(!Worker().run(1000, of: 4_000))
  }

  @Test func twoItemsOfOneEntryAreNotDeferred() {
    let worker = Worker()
    #expect(worker.run(Self.group, of: 100))
    #expect(!worker.submit())
    worker.deferral.settle()
    #expect(worker.submit())
  }

  @Test func aRiseIsFollowedAtOnceAndAFallSlowly() {
    let worker = Worker()
    #expect(worker.run(1000, of: 100))
    #expect(!worker.run(Self.group, of: 20_000))
    #expect(!worker.isRecent)
    #expect(!worker.run(Self.group * 4, of: 100))
    #expect(worker.run(Self.group * 40, of: 100))
  }

  @Test func oneLongEntryAmongShortOnesIsNoticed() {
    let worker = Worker()
    #expect(worker.run(1000, of: 100))
    _ = worker.run(1, of: 20_000)
    #expect(!worker.run(Self.group - 1, of: 100))
  }

  @Test func sleepIsNoEntry() {
    let worker = Worker()
    #expect(worker.run(1000, of: 100))
    worker.sleep(1_000_000_000)
    #expect(worker.run(Self.group, of: 100))
  }
}
