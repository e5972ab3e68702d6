// L. Timer sources.

import Glibc
import Testing

#if CONCOURSE
  import ConcourseEvents
#else
  import Dispatch
#endif

/// Calls of deprecated functions give no warning in deprecated code, and that is called through here.
private protocol OlderNames {
  func use(_ timer: DispatchSource, _ calls: Calls)
}

private struct OlderTimerNames: OlderNames {
  @available(*, deprecated, message: "calls what is deprecated")
  func use(_ timer: DispatchSource, _ calls: Calls) {
    timer.scheduleOneshot(deadline: .now(), leeway: .nanoseconds(0))
    #expect(calls.comes())
    timer.scheduleOneshot(wallDeadline: .now(), leeway: .nanoseconds(0))
    #expect(calls.comes())
    timer.scheduleRepeating(deadline: .now(), interval: .milliseconds(1), leeway: .nanoseconds(0))
    #expect(calls.reaches(calls.sum + 2))
    timer.scheduleRepeating(deadline: .now(), interval: 0.001, leeway: .nanoseconds(0))
    #expect(calls.reaches(calls.sum + 2))
    timer.scheduleRepeating(wallDeadline: .now(), interval: .milliseconds(1), leeway: .nanoseconds(0))
    #expect(calls.reaches(calls.sum + 2))
    timer.scheduleRepeating(wallDeadline: .now(), interval: 0.001, leeway: .nanoseconds(0))
    #expect(calls.reaches(calls.sum + 2))
  }
}

extension Conformance {
  @Suite("L. Timer sources")
  struct TimerSourceTests {
    private let queue = DispatchQueue(label: "timers")

    /// A timer that records its data, not yet active or programmed.
    private func timer(_ calls: Calls, flags: DispatchSource.TimerFlags = []) -> any DispatchSourceTimer {
      let timer = DispatchSource.makeTimerSource(flags: flags, queue: queue)
      timer.setEventHandler { calls.record(timer.data) }
      return timer
    }

    /// Returns when its own timer, that much in the future, has fired: timers due before
    /// have fired.
    private func anotherFires(after milliseconds: Int) -> Bool {
      let calls = Calls()
      let other = timer(calls)
      other.schedule(deadline: .now() + .milliseconds(milliseconds))
      other.activate()
      defer { retire(other) }
      return calls.comes() && othersHadTheirTurn()
    }

    @Test("S85 a timer never programmed never fires, until it is")
    func neverProgrammed() {
      let calls = Calls()
      let timer = timer(calls)
      timer.activate()
      #expect(anotherFires(after: 20))
      #expect(calls.count == 0)
      timer.schedule(deadline: .now())
      #expect(calls.comes())
      #expect(retire(timer))
      #expect(calls.data == [1])
    }

    @Test("S85 a start of forever disarms a timer until it is programmed again")
    func forever() {
      let calls = Calls()
      let timer = timer(calls)
      timer.schedule(deadline: .now() + .milliseconds(10), repeating: .milliseconds(10))
      timer.schedule(deadline: .distantFuture)
      timer.activate()
      #expect(anotherFires(after: 40))
      timer.schedule(wallDeadline: .distantFuture, repeating: .milliseconds(1))
      #expect(anotherFires(after: 20))
      timer.schedule(deadline: .distantFuture, repeating: 0.001)
      #expect(anotherFires(after: 20))
      timer.schedule(deadline: .now() + .never, repeating: .milliseconds(1))
      #expect(anotherFires(after: 20))
      #expect(calls.count == 0)
      timer.schedule(deadline: .now() + .milliseconds(1))
      #expect(calls.comes())
      timer.schedule(deadline: .now() + .milliseconds(1))
      #expect(calls.comes())
      #expect(retire(timer))
      #expect(calls.data == [1, 1])
    }

    @Test("S86 with an infinite interval a timer fires once, is not cancelled, and can be set again")
    func oneShot() {
      let calls = Calls()
      let timer = timer(calls)
      timer.schedule(deadline: .now() + .milliseconds(1))
      timer.activate()
      #expect(calls.comes())
      #expect(!timer.isCancelled)
      #expect(anotherFires(after: 20))
      timer.schedule(deadline: .now() + .milliseconds(1), repeating: .never)
      #expect(calls.comes())
      timer.schedule(deadline: .now() + .milliseconds(1), repeating: .infinity)
      #expect(calls.comes())
      timer.schedule(wallDeadline: .now() + .milliseconds(1), repeating: .never)
      #expect(calls.comes())
      timer.schedule(wallDeadline: .now() + .milliseconds(1), repeating: .infinity)
      #expect(calls.comes())
      #expect(anotherFires(after: 20))
      #expect(retire(timer))
      #expect(calls.data == [1, 1, 1, 1, 1])
    }

    @Test("S86 a timer does not fire before its deadline, on either clock")
    func notEarly() {
      for milliseconds in [1, 3, 10, 30] {
        let early = Shared(0)
        let fired = DispatchSemaphore(value: 0)
        let deadline = DispatchTime.now() + .milliseconds(milliseconds)
        let timer = DispatchSource.makeTimerSource(queue: queue)
        timer.setEventHandler {
          if DispatchTime.now() < deadline { early.increment() }
          fired.signal()
        }
        timer.schedule(deadline: deadline, leeway: .milliseconds(5))
        timer.activate()
        #expect(fired.comes())
        #expect(retire(timer))

        // The wall clock may be set, but hardly within these milliseconds, and a step forwards only
        // makes the timer fire: a millisecond of slewing is allowed for.
        let wallDeadline = DispatchWallTime.now() + .milliseconds(milliseconds)
        let nearly = DispatchTime.now() + .milliseconds(milliseconds - 1)
        let wallTimer = DispatchSource.makeTimerSource(queue: queue)
        wallTimer.setEventHandler {
          if DispatchTime.now() < nearly { early.increment() }
          fired.signal()
        }
        wallTimer.schedule(wallDeadline: wallDeadline)
        wallTimer.activate()
        #expect(fired.comes())
        #expect(retire(wallTimer))
        #expect(early.value == 0)
      }
    }

    @Test("S87 a repeating timer fires at start + n·interval and its data counts the intervals")
    func repeating() {
      for onWallClock in [false, true] {
        let interval = 2_000_000
        let fires = Shared([(at: DispatchTime, data: UInt)]())
        let calls = Calls()
        let timer = DispatchSource.makeTimerSource(queue: queue)
        timer.setEventHandler {
          fires.change { $0.append((.now(), timer.data)) }
          calls.record(timer.data)
        }
        let start = DispatchTime.now() + .milliseconds(3)
        if onWallClock {
          timer.schedule(wallDeadline: .now() + .milliseconds(4), repeating: .nanoseconds(interval))
        } else {
          timer.schedule(deadline: start, repeating: .nanoseconds(interval))
        }
        timer.activate()
        #expect(calls.reaches(30))
        #expect(retire(timer))
        var intervals = 0
        for fire in fires.value {
          #expect(fire.data > 0)
          intervals += Int(fire.data)
          // The n-th interval ends no earlier than its time: there is no drift ahead …
          #expect(nanoseconds(from: start, to: fire.at) >= (intervals - 1) * interval)
        }
        // … and none behind either: what a late call missed is in the data of a later one. The third call after this
        // one has data of a turn that began after this one ended, however late that was.
        let all = fires.value
        for (index, fire) in all.enumerated().dropLast(3) {
          let counted = all[...(index + 3)].reduce(0) { $0 + Int($1.data) }
          #expect(nanoseconds(from: start, to: fire.at) / interval <= counted)
        }
      }
    }

    @Test("S87 intervals as seconds")
    func intervalsInSeconds() {
      let calls = Calls()
      let timer = timer(calls)
      timer.schedule(deadline: .now(), repeating: 0.001)
      timer.activate()
      #expect(calls.reaches(5))
      timer.schedule(wallDeadline: .now(), repeating: 0.001)
      #expect(calls.reaches(calls.sum + 5))
      #expect(retire(timer))
    }

    @Test("S88 what fires while the handler runs is merged into one call that counts it")
    func mergedWhileRunning() {
      let calls = Calls()
      let late = Shared(DispatchTime.now())
      let timer = DispatchSource.makeTimerSource(queue: queue)
      let start = DispatchTime.now() + .milliseconds(1)
      timer.setEventHandler {
        let data = timer.data
        if calls.count == 0 {
          pass(start + .milliseconds(60))
          late.set(.now())
        }
        calls.record(data)
      }
      timer.schedule(deadline: start, repeating: .milliseconds(5))
      timer.activate()
      #expect(calls.comes())
      #expect(calls.comes())
      #expect(retire(timer))
      #expect(calls.data[0] + calls.data[1] >= 12)
    }

    @Test("S88 what fires during a suspension of the source is merged into one call that counts it")
    func mergedWhileSuspended() {
      let calls = Calls()
      let timer = timer(calls)
      let start = DispatchTime.now() + .milliseconds(10)
      timer.schedule(deadline: start, repeating: .milliseconds(10))
      timer.activate()
      timer.suspend()
      pass(start + .milliseconds(105))
      let before = calls.sum
      timer.resume()
      #expect(calls.reaches(before + 10))
      #expect(retire(timer))
      // Nothing fired before the suspension, unless this thread lost the processor for long.
      if before == 0 { #expect(calls.data[0] >= 10) }
    }

    @Test("S88 what fires during a suspension of the target queue is merged into one call that counts it")
    func mergedWhileTargetSuspended() {
      let calls = Calls()
      let timer = timer(calls)
      let start = DispatchTime.now() + .milliseconds(10)
      queue.suspend()
      timer.schedule(deadline: start, repeating: .milliseconds(10))
      timer.activate()
      pass(start + .milliseconds(105))
      #expect(calls.count == 0)
      queue.resume()
      #expect(calls.comes())
      #expect(retire(timer))
      #expect(calls.data[0] >= 10)
    }

    @Test("S88 a one-shot timer that comes due during a suspension fires once, on resume")
    func oneShotWhileSuspended() {
      let calls = Calls()
      let timer = timer(calls)
      timer.activate()
      timer.suspend()
      timer.schedule(deadline: .now() + .milliseconds(1))
      #expect(anotherFires(after: 20))
      #expect(calls.count == 0)
      timer.resume()
      #expect(calls.comes())
      #expect(anotherFires(after: 10))
      #expect(retire(timer))
      #expect(calls.data == [1])
    }

    @Test("S89 programming a timer discards accumulated fires, while suspended too")
    func reprogrammed() {
      let calls = Calls()
      let timer = timer(calls)
      timer.schedule(deadline: .now(), repeating: .milliseconds(1))
      timer.activate()
      #expect(calls.comes())
      timer.suspend()
      #expect(anotherFires(after: 30))
      let before = calls.count
      let deadline = DispatchTime.now() + .milliseconds(30)
      timer.schedule(deadline: deadline)
      timer.resume()
      #expect(othersHadTheirTurn())
      let early = DispatchTime.now() < deadline && calls.count > before
      #expect(!early)
      while calls.count <= before { guard calls.comes() else { break } }
      #expect(DispatchTime.now() >= deadline)
      #expect(anotherFires(after: 10))
      #expect(retire(timer))
      #expect(calls.data.dropFirst(before) == [1])
    }

    @Test("S89 the clock follows the new start value and may change")
    func changeOfClock() {
      let calls = Calls()
      let timer = timer(calls)
      timer.schedule(deadline: .now() + .seconds(1_000))
      timer.activate()
      timer.schedule(wallDeadline: .now() + .milliseconds(1))
      #expect(calls.comes())
      timer.schedule(wallDeadline: .now() + .seconds(1_000))
      timer.schedule(deadline: .now() + .milliseconds(1))
      #expect(calls.comes())
      #expect(anotherFires(after: 10))
      #expect(retire(timer))
      #expect(calls.data == [1, 1])
    }

    @Test("S89 an earlier deadline replaces a later one, and a later one an earlier one")
    func earlierAndLater() {
      let calls = Calls()
      let timer = timer(calls)
      timer.schedule(deadline: .now() + .seconds(1_000))
      timer.activate()
      timer.schedule(deadline: .now() + .milliseconds(1))
      #expect(calls.comes())
      timer.schedule(deadline: .now() + .milliseconds(20))
      timer.schedule(deadline: .now() + .seconds(1_000))
      #expect(anotherFires(after: 50))
      #expect(retire(timer))
      #expect(calls.data == [1])
    }

    @Test("S89 programmed from its own handler, again and again")
    func fromTheHandler() {
      let calls = Calls()
      let timer = DispatchSource.makeTimerSource(queue: queue)
      timer.setEventHandler {
        let data = timer.data
        if calls.count < 50 { timer.schedule(deadline: .now() + .microseconds(100)) }
        calls.record(data)
      }
      timer.schedule(deadline: .now())
      timer.activate()
      for _ in 0..<51 { #expect(calls.comes()) }
      #expect(retire(timer))
      #expect(calls.data == Array(repeating: 1, count: 51))
    }

    @Test("S89 programmed by many threads at once, the last one counts")
    func programmedByMany() {
      let calls = Calls()
      let timer = timer(calls)
      timer.activate()
      DispatchQueue.concurrentPerform(iterations: 4) { [timer = object(timer)] _ in
        for _ in 0..<500 {
          timer.schedule(deadline: .now() + .seconds(1_000), repeating: .seconds(1_000))
        }
      }
      #expect(anotherFires(after: 5))
      #expect(calls.count == 0)
      timer.schedule(deadline: .now())
      #expect(calls.comes())
      #expect(retire(timer))
    }

    @Test("S90, S152 a start of now, or in the past, fires at once, on either clock")
    func past() {
      let calls = Calls()
      let timer = timer(calls)
      timer.activate()
      timer.schedule(deadline: .now())
      #expect(calls.comes())
      timer.schedule(deadline: .now() - .seconds(100))
      #expect(calls.comes())
      timer.schedule(deadline: DispatchTime(uptimeNanoseconds: 1))
      #expect(calls.comes())
      timer.schedule(deadline: DispatchTime(uptimeNanoseconds: 0))
      #expect(calls.comes())
      timer.schedule(wallDeadline: .now())
      #expect(calls.comes())
      timer.schedule(wallDeadline: .now() - .seconds(100))
      #expect(calls.comes())
      timer.schedule(wallDeadline: DispatchWallTime(timespec: timespec(tv_sec: 1, tv_nsec: 0)))
      #expect(calls.comes())
      #expect(retire(timer))
      #expect(calls.data == Array(repeating: 1, count: 7))
    }

    @Test("S91 programming after cancel is ignored")
    func afterCancel() {
      let calls = Calls()
      let timer = timer(calls)
      timer.activate()
      #expect(retire(timer))
      timer.schedule(deadline: .now())
      timer.schedule(wallDeadline: .now(), repeating: .milliseconds(1))
      #expect(anotherFires(after: 10))
      #expect(calls.count == 0)
    }

    @Test("S99 a repeating timer stops when cancelled, from its handler too")
    func cancelled() {
      let calls = Calls()
      let cancelled = DispatchSemaphore(value: 0)
      let timer = DispatchSource.makeTimerSource(queue: queue)
      timer.setEventHandler {
        if calls.count == 4 { timer.cancel() }
        calls.record(timer.data)
      }
      timer.setCancelHandler { cancelled.signal() }
      timer.schedule(deadline: .now(), repeating: .milliseconds(1))
      timer.activate()
      #expect(cancelled.comes())
      #expect(anotherFires(after: 10))
      #expect(calls.count == 5)
    }

    @Test("S92 leeway bounds the lateness, strict timers honour theirs")
    func leeway() {
      for flags: DispatchSource.TimerFlags in [[], .strict] {
        let calls = Calls()
        let timer = timer(calls, flags: flags)
        let deadline = DispatchTime.now() + .milliseconds(10)
        timer.schedule(deadline: deadline, leeway: .milliseconds(20))
        timer.activate()
        #expect(calls.comes())
        let firstCall = DispatchTime.now()
        #expect(firstCall >= deadline)
        // Far more than the leeway, for machines that are busy.
        #expect(firstCall < deadline + .seconds(10))
        #expect(retire(timer))
        #expect(calls.data == [1])
      }
    }

    @Test("S92 a leeway longer than the interval does not swallow fires")
    func longLeeway() {
      let calls = Calls()
      let timer = timer(calls)
      timer.schedule(deadline: .now(), repeating: .milliseconds(4), leeway: .seconds(100))
      timer.activate()
      let fired = calls.reaches(10)
      #expect(retire(timer))
      #expect(fired, "only \(calls.data) came")
    }

    @Test("S92 a timer with a leeway without a bound fires")
    func leewayWithoutBound() {
      let calls = Calls()
      let timer = timer(calls)
      timer.schedule(deadline: .now() + .milliseconds(5), leeway: .never)
      timer.activate()
      #expect(calls.comes())
      timer.schedule(wallDeadline: .now() + .milliseconds(5), repeating: .milliseconds(5), leeway: .never)
      let fired = calls.reaches(3)
      #expect(retire(timer))
      #expect(fired, "only \(calls.data) came")
    }

    @Test("S93 an interval of 0 runs the handler continuously, with huge counts")
    func zeroInterval() {
      let calls = Calls()
      let timer = timer(calls)
      timer.schedule(deadline: .now(), repeating: .nanoseconds(0))
      timer.activate()
      #expect(calls.reaches(100_000))
      timer.schedule(deadline: .now(), repeating: 0.0)
      #expect(calls.reaches(calls.sum + 100_000))
      timer.schedule(wallDeadline: .now(), repeating: .nanoseconds(1))
      #expect(calls.reaches(calls.sum + 100_000))
      #expect(retire(timer))
    }

    @Test("trap 12: the longest interval never comes round")
    func longestInterval() {
      let calls = Calls()
      let timer = timer(calls)
      timer.schedule(deadline: .now(), repeating: .seconds(.max), leeway: .seconds(.max))
      timer.activate()
      #expect(anotherFires(after: 10))
      #expect(retire(timer))
      #expect(calls.sum <= 1)
    }

    @Test("S81 timers fire in the order of their deadlines")
    func order() {
      // Only deadlines that are all set before the first of them comes have one order: with luck at once.
      for attempt in 0..<5 {
        let order = Shared([Int]())
        let done = DispatchGroup()
        let start = DispatchTime.now() + .milliseconds(60 << attempt)
        let timers = [5, 2, 9, 0, 7, 3, 8, 1, 6, 4].map { rank in
          let timer = DispatchSource.makeTimerSource(flags: .strict, queue: queue)
          done.enter()
          timer.setEventHandler {
            order.change { $0.append(rank) }
            done.leave()
          }
          timer.schedule(deadline: start + .milliseconds(rank * 20))
          timer.activate()
          return timer
        }
        let inTime = DispatchTime.now() < start
        #expect(done.empties())
        for timer in timers { #expect(retire(timer)) }
        if inTime {
          #expect(order.value == Array(0..<10))
          return
        }
      }
      Issue.record("the machine was too busy to set ten timers within a second")
    }

    @Test("a thousand timers, half of them cancelled, fire once each and none early")
    func many() {
      let fired = Shared(0)
      let wrong = Shared(0)
      let done = DispatchGroup()
      for index in 0..<1_000 {
        let deadline = DispatchTime.now() + .microseconds(2_000 + (index * 7_919) % 30_000)
        let timer = DispatchSource.makeTimerSource()
        timer.setEventHandler {
          if DispatchTime.now() < deadline || index % 2 == 1 { wrong.increment() }
          fired.increment()
          timer.cancel()
        }
        done.enter()
        timer.setCancelHandler { done.leave() }
        timer.schedule(deadline: index % 2 == 0 ? deadline : .now() + .seconds(1_000))
        timer.activate()
        if index % 2 == 1 { timer.cancel() }
      }
      #expect(done.empties())
      #expect(fired.value == 500)
      #expect(wrong.value == 0)
    }

    @Test("the older names of schedule")
    func olderNames() {
      let calls = Calls()
      let timer = timer(calls)
      timer.activate()
      (OlderTimerNames() as any OlderNames).use(object(timer), calls)
      #expect(retire(timer))
    }

    @Test("the flags of timers")
    func flags() {
      #expect(DispatchSource.TimerFlags.strict.rawValue == 1)
      #expect(DispatchSource.TimerFlags(rawValue: 1) == .strict)
      #expect(DispatchSource.TimerFlags().isEmpty)
    }
  }
}
