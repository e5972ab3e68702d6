import Testing

import struct CConcourse.concourse_event

@testable import ConcourseModel

/// The timers of two shards: each has a table, and one thread reports what is due in both. No thread but the scenario's
/// exists.
extension ModelSuite {
  @Suite struct Timers {
    private static let millisecond: UInt64 = 1_000_000

    /// - Returns: The event queue.
    private static func begin() -> Poller {
      Model.moveClock()
      Model.setTopology("2x1")
      ModelFaults.refusesThreads = true
      EventLoop.use(begins: false)
      return EventLoop.shared.begin()!
    }

    /// The calling thread sets timers in a shard's table from now on.
    private static func enter(_ shard: Int) {
      CurrentThread.state.pointee.roots = UInt32(Shard(number: shard).firstRoot)
    }

    /// Timers by their numbers, and what has fired.
    private final class Timers: TimerOwner, @unchecked Sendable {
      let fired = Model.Log<Int>()
      // SAFETY: never changed after the initialiser.
      private var timers: [LoopTimer] = []

      init(_ count: Int) { timers = (0..<count).map { _ in LoopTimer(owner: self) } }

      subscript(_ number: Int) -> LoopTimer { timers[number - 1] }

      func timerIsDue(_ timer: LoopTimer) { fired.append(timers.firstIndex { $0 === timer }! + 1) }

      func set(_ number: Int, _ delay: UInt64) { self[number].set(.uptime(Clock.uptimeAtStart + delay)) }

      /// As a source does.
      func setUnlessDue(_ number: Int, _ delay: UInt64) {
        let window = TimerWindow(.uptime(Clock.uptimeAtStart + delay))
        if !self[number].setUnlessDue(window) { timerIsDue(self[number]) }
      }
    }

    /// Collects an event of the kernel's timer, if there is one, and reports what is due.
    /// - Returns: Whether there was one.
    @discardableResult
    private static func collect(_ poller: Poller) -> Bool {
      withUnsafeTemporaryAllocation(of: concourse_event.self, capacity: Poller.batch) { events in
        guard poller.wait(events.baseAddress!, milliseconds: 0) > 0 else { return false }
        EventLoop.timers.reportDue(poller)
        return true
      }
    }

    // MARK: Arming

    /// The only timer of a shard fires. A thread of the other shard sets one that is due later: either it sets the
    /// kernel's timer, or the thread that reports sees it.
    private static func settingAgainstReport() {
      let poller = begin()
      let timers = Timers(2)
      timers.set(1, millisecond)
      Model.thread("reports") {
        Model.advance(nanoseconds: millisecond)
        Model.check(collect(poller), "the kernel's timer was not set")
      }
      Model.thread("sets") {
        enter(1)
        timers.set(2, 2 * millisecond)
      }
      Model.run()
      Model.thread("collects") {
        Model.advance(nanoseconds: 2 * millisecond)
        collect(poller)
      }
      Model.run()
      Model.check(timers.fired.entries == [1, 2], "only \(timers.fired.entries) fired")
    }

    @Test func aTimerIsSetWhileAnotherShardsFires() {
      expectComplete(
        Model.explore("a timer is set against a report", bound: 1) { Self.settingAgainstReport() })
      expectFound(
        PlantedFault(.noWrite, "TimerTables+Report", "hasFired()"),
        PlantedFault(.relaxed, "TimerTables+Report", "hasFired()"),
        PlantedFault(.relaxed, "TimerTables+Report", "first(at:isWall:)"),
        PlantedFault(.relaxed, "TimerTable", "insert(_:_:_:into:_:)"), bound: 1
      ) { Self.settingAgainstReport() }
    }

    /// Threads of two shards set the first timers at once, the later one perhaps after the earlier: the kernel's timer is
    /// set to the earlier time.
    private static func twoSettings() {
      let poller = begin()
      let timers = Timers(2)
      for shard in 0..<2 {
        Model.thread("sets") {
          enter(shard)
          timers.set(shard + 1, UInt64(shard + 1) * millisecond)
        }
      }
      Model.run()
      for count in 1...2 {
        Model.thread("collects") {
          Model.advance(nanoseconds: millisecond)
          collect(poller)
        }
        Model.run()
        Model.check(timers.fired.entries == Array(1...count), "only \(timers.fired.entries) fired")
      }
    }

    @Test func twoShardsSetTheirFirstTimers() {
      expectComplete(Model.explore("two first timers", bound: 1) { Self.twoSettings() })
      expectFound(PlantedFault(.noWrite, "Lock", "lock()"), bound: 1) { Self.twoSettings() }
    }

    /// The kernel refuses to set its timer for one shard, whose thread cancels the timer and then makes up for the refusal, as
    /// the monitor does. A thread of the other shard sets a later timer meanwhile.
    private static func settingAgainstRefusal() {
      let poller = begin()
      let timers = Timers(2)
      Model.thread("is refused") {
        ModelFaults.refusesTimers = true
        timers.set(1, millisecond)
        ModelFaults.refusesTimers = false
        timers[1].cancel()
        _ = EventLoop.timers.armAgain(poller)
      }
      Model.thread("sets") {
        enter(1)
        timers.set(2, 2 * millisecond)
      }
      Model.run()
      // The monitor looks again if the second thread was refused, too.
      _ = EventLoop.timers.armAgain(poller)
      Model.thread("collects") {
        Model.advance(nanoseconds: 2 * millisecond)
        collect(poller)
      }
      Model.run()
      Model.check(timers.fired.entries == [2], "only \(timers.fired.entries) fired")
    }

    @Test func aTimerIsSetWhileAnotherShardsIsRefused() {
      expectComplete(
        Model.explore("a timer is set against a refusal", bound: 1) { Self.settingAgainstRefusal() })
      expectFound(
        PlantedFault(.relaxed, "TimerTables+Report", "set(_:_:)"),
        PlantedFault(.noWrite, "TimerTables+Report", "noteRefusal()"), bound: 1
      ) { Self.settingAgainstRefusal() }
    }

    /// More timers are due than a thread reports at once, and the kernel refuses its timer for the rest. The monitor, which
    /// looks again, sets it.
    private static func refusalWhileTimersAreLeft() {
      let poller = begin()
      let timers = Timers(2)
      for number in 1...2 { timers.set(number, millisecond) }
      Model.thread("reports") {
        Model.advance(nanoseconds: millisecond)
        ModelFaults.refusesTimers = true
        Model.check(collect(poller), "the kernel's timer was not set")
        ModelFaults.refusesTimers = false
        Model.check(timers.fired.entries == [1], "not only one was reported")
        Model.check(EventLoop.timers.armAgain(poller), "refused again")
        collect(poller)
        Model.check(timers.fired.entries == [1, 2], "only \(timers.fired.entries) fired")
      }
      Model.run()
    }

    @Test func moreTimersAreDueThanOneReportHas() {
      expectComplete(
        Model.explore("refused while timers are left", bound: 1) { Self.refusalWhileTimersAreLeft() })
      expectFound(PlantedFault(.noWrite, "TimerTables+Report", "noteRefusal()"), bound: 1) {
        Self.refusalWhileTimersAreLeft()
      }
    }

    // MARK: Cancelling

    /// A timer of one shard is due, and a thread of the other cancels it: it fires, or it was there.
    private static func cancelAgainstReport() {
      let poller = begin()
      let timers = Timers(1)
      timers.set(1, millisecond)
      // SAFETY: one thread writes it.
      nonisolated(unsafe) var wasThere = false
      Model.thread("reports") {
        Model.advance(nanoseconds: millisecond)
        collect(poller)
      }
      Model.thread("cancels") {
        enter(1)
        wasThere = timers[1].cancel()
      }
      Model.run()
      Model.check(
        timers.fired.entries.count == (wasThere ? 0 : 1) && EventLoop.timers.count == 0,
        "fired \(timers.fired.entries.count) times")
    }

    /// Threads of both shards set a timer, and one of them cancels it.
    private static func moves() {
      _ = begin()
      let timers = Timers(1)
      timers.set(1, 3 * millisecond)
      for shard in 0..<2 {
        Model.thread("sets") {
          enter(1 - shard)
          timers.set(1, UInt64(shard + 1) * millisecond)
          if shard == 0 { timers[1].cancel() }
        }
      }
      Model.run()
      let count = EventLoop.timers.count
      Model.check(timers[1].cancel() == (count == 1) && count <= 1, "\(count) entries")
      Model.check(EventLoop.timers.count == 0, "a timer is left")
    }

    /// As `moves`, with a timer that no thread keeps.
    private static func movesAndEnds() {
      final class Ending: LoopTimer, @unchecked Sendable {
        let ends: () -> Void
        init(_ ends: @escaping () -> Void) {
          self.ends = ends
          super.init(owner: nil)
        }
        deinit { ends() }
      }
      _ = begin()
      // SAFETY: one thread writes each after another.
      nonisolated(unsafe) var hasEnded = false
      nonisolated(unsafe) var timer: Ending? = Ending { hasEnded = true }
      enter(0)
      timer!.set(.uptime(Clock.uptimeAtStart + millisecond))
      for _ in 0..<2 {
        Model.thread("sets") {
          enter(1)
          timer!.set(.uptime(Clock.uptimeAtStart + millisecond))
        }
      }
      Model.run()
      timer!.cancel()
      timer = nil
      Model.check(hasEnded, "a reference is left")
    }

    @Test func aTimerOfAnotherShardIsCancelled() {
      expectComplete(
        Model.explore("a cancel in another shard", bound: 1, stale: 0) { Self.cancelAgainstReport() })
      expectComplete(Model.explore("a timer moves between shards", bound: 1) { Self.moves() })
      expectComplete(Model.explore("a timer ends that moved", bound: 1, stale: 0) { Self.movesAndEnds() })
      expectFound(PlantedFault(.relaxed, "LoopTimer", "home"), bound: 1) { Self.moves() }
    }

    /// A thread that reports takes a timer of each shard, and puts one back, since another of its time, which was set before
    /// it, is left. Another thread sets that one on the other clock meanwhile, and cancels it.
    private static func setWhileTaken() {
      let poller = begin()
      let timers = Timers(4)
      for (number, shard) in [(1, 0), (2, 0), (3, 1)] {
        enter(shard)
        Model.advance(nanoseconds: 1)
        timers.set(number, UInt64(min(number, 2)))
      }
      timers[4].set(.wall(.max / 2))
      Model.thread("reports") {
        Model.advance(nanoseconds: millisecond)
        // The first only: the thread gives up then.
        EventLoop.timers.reportDue(poller)
      }
      Model.thread("sets") {
        enter(1)
        timers[3].set(.wall(.max / 2))
        timers[3].cancel()
      }
      Model.run()
      timers[3].cancel()
      Model.check(timers[4].cancel(), "another timer than the one meant has been cancelled")
      timers[2].cancel()
      Model.check(EventLoop.timers.count == 0, "a timer is left")
    }

    /// As above, on the wall clock. The thread cancels the timer, and sets the clock back: it fires, or it was there.
    private static func cancelWhileTaken() {
      _ = begin()
      let timers = Timers(3)
      for (number, shard) in [(1, 0), (2, 0), (3, 1)] {
        enter(shard)
        Model.advance(nanoseconds: 1)
        timers[number].set(.wall(Clock.wallAtStart + 10 + UInt64(min(number, 2))))
      }
      // SAFETY: one thread writes it.
      nonisolated(unsafe) var wasThere = false
      Model.thread("reports") {
        Model.advance(nanoseconds: millisecond)
        while EventLoop.timers.reportDue(nil) {}
      }
      Model.thread("cancels") {
        wasThere = timers[3].cancel()
        Model.setWall(by: -1_000_000_000)
      }
      Model.run()
      Model.check(timers.fired.entries.contains(3) != wasThere, "fired \(timers.fired.entries)")
    }

    @Test func aTimerThatIsPutBackIsCancelled() {
      expectComplete(Model.explore("set while taken", bound: 1, stale: 0) { Self.setWhileTaken() })
      expectComplete(Model.explore("cancelled while taken", bound: 2, stale: 0) { Self.cancelWhileTaken() })
    }

    // MARK: Order

    /// Timers of both shards are due, more than a thread takes at once from a table.
    private static func manyDue() {
      let poller = begin()
      let timers = Timers(5)
      for (number, shard) in [(4, 1), (1, 0), (2, 0), (3, 1), (5, 0)] {
        enter(shard)
        timers.set(number, UInt64(number))
      }
      Model.thread("reports") {
        Model.advance(nanoseconds: millisecond)
        while EventLoop.timers.reportDue(poller) {}
      }
      Model.run()
      Model.check(timers.fired.entries == [1, 2, 3, 4, 5], "fired in the order \(timers.fired.entries)")
    }

    /// Timers of one time, which has just come.
    private static func manyEqual() {
      let poller = begin()
      let timers = Timers(5)
      for (number, shard) in [(1, 0), (2, 0), (3, 1), (4, 1), (5, 0)] {
        enter(shard)
        Model.advance(nanoseconds: 1)
        timers.set(number, millisecond)
      }
      Model.thread("reports") {
        Model.advance(nanoseconds: millisecond - 5)
        while EventLoop.timers.reportDue(poller) {}
      }
      Model.run()
      Model.check(timers.fired.entries == [1, 2, 3, 4, 5], "fired in the order \(timers.fired.entries)")
    }

    /// A thread whose shard changes sets timers whose times have passed, while another reports an earlier one.
    private static func passed() {
      let poller = begin()
      let timers = Timers(3)
      timers.set(1, millisecond)
      Model.thread("reports") { EventLoop.timers.reportDue(poller) }
      Model.thread("sets") {
        Model.advance(nanoseconds: 2 * millisecond)
        enter(1)
        timers.setUnlessDue(2, millisecond)
        enter(0)
        timers.setUnlessDue(3, 2 * millisecond)
      }
      Model.run()
      while EventLoop.timers.reportDue(poller) {}
      Model.check(timers.fired.entries == [1, 2, 3], "fired in the order \(timers.fired.entries)")
    }

    /// A thread whose shard changes sets two timers of one time while another reports. The second is in the table that is
    /// looked at last.
    private static func equalTimes() {
      _ = begin()
      let timers = Timers(3)
      enter(1)
      timers.set(3, 2)
      Model.thread("reports") {
        Model.advance(nanoseconds: millisecond)
        while EventLoop.timers.reportDue(nil) {}
      }
      Model.thread("sets") {
        for number in 1...2 {
          enter(number - 1)
          Model.advance(nanoseconds: 1)
          timers.set(number, 1)
        }
      }
      Model.run()
      while EventLoop.timers.reportDue(nil) {}
      let (first, second) = (timers.fired.entries.firstIndex(of: 1), timers.fired.entries.firstIndex(of: 2))
      Model.check(first! < second!, "fired in the order \(timers.fired.entries)")
    }

    @Test func timersOfTwoShardsFireInOrder() {
      expectComplete(Model.explore("equal times in two shards", bound: 1, stale: 0) { Self.equalTimes() })
      expectComplete(Model.explore("many due timers of two shards", bound: 1) { Self.manyDue() })
      expectComplete(Model.explore("many of one time", bound: 1) { Self.manyEqual() })
      expectComplete(Model.explore("passed times in two shards", bound: 2, stale: 0) { Self.passed() })
      expectFound(
        PlantedFault(.stale, "TimerTables+Report", "unlessReporting"),
        PlantedFault(.noWrite, "TimerTables+Report", "begin()"), bound: 2
      ) { Self.passed() }
    }
  }
}
