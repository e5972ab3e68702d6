import CBench

extension Row {
  static let timers: [Row] = [
    asyncAfterManyTimers,
    cancelledTimerSources,
    cancelledAsyncAfter,
    timerLateness(milliseconds: 1, samples: 1_000),
    timerLateness(milliseconds: 5, samples: 400),
    timerLateness(milliseconds: 50, samples: 100),
  ]

  private static let asyncAfterManyTimers = Row(
    "async-after-many-timers", count: 200_000,
    "200,000 calls of asyncAfter, each 1 ms ahead: cost of a timer until all have fired"
  ) { count in
    let queue = DispatchQueue(label: "timers")
    let allFired = DispatchSemaphore(value: 0)
    let fired = Cell()
    return perOperation(count, adding: count, to: fired, "timers that fired") {
      let time = elapsed {
        for _ in 0..<count {
          queue.asyncAfter(deadline: .now() + .milliseconds(1)) {
            fired.add(1)
            if fired.value == count { allFired.signal() }
          }
        }
        allFired.wait()
      }
      queue.sync {}
      verify(time >= 1_000_000, equals: true, "the last timer did not fire early")
      return time
    }
  }

  private static let cancelledTimerSources = Row(
    "cancelled-timer-sources",
    TimerMemory.figures("cancelled-timer-sources", "a million timer sources an hour ahead")
  ) { scale in
    let count = scale.count(1_000_000)
    let queue = DispatchQueue(label: "timers")
    let fired = Cell()
    let cancelled = Cell()
    let allCancelled = DispatchGroup()
    // The array's own memory is resident before the first measurement.
    let never = DispatchSource.makeTimerSource(queue: queue)
    var timers = [any DispatchSourceTimer](repeating: never, count: count)
    let memory = TimerMemory(count: count) { count in
      for index in 0..<count {
        let timer = DispatchSource.makeTimerSource(queue: queue)
        timer.schedule(deadline: .now() + .milliseconds(3_600_000 + index))
        timer.setEventHandler { fired.add(1) }
        timer.setCancelHandler {
          cancelled.add(1)
          allCancelled.leave()
        }
        timer.resume()
        timers[index] = timer
      }
      // Waits for a runtime that arms on another thread.
      queue.sync {}
    } disarm: { count in
      cancelled.value = 0
      for _ in 0..<count { allCancelled.enter() }
      for index in 0..<count {
        timers[index].cancel()
        timers[index] = never
      }
      allCancelled.wait()
      queue.sync {}
      verify(cancelled.value, equals: count, "cancel handlers that ran")
    }
    verify(fired.value, equals: 0, "timers that fired an hour early")
    // The toolchain's Dispatch traps when a source that was never activated is released.
    never.resume()
    never.cancel()
    return memory.measurements(count, check: cancelled.value)
  }

  private static let cancelledAsyncAfter = Row(
    "cancelled-async-after",
    TimerMemory.figures("cancelled-async-after", "a million asyncAfter of a work item an hour ahead")
  ) { scale in
    let count = scale.count(1_000_000)
    let queue = DispatchQueue(label: "timers")
    let fired = Cell()
    var cancelled = 0
    // The array's own memory is resident before the first measurement.
    let none = DispatchWorkItem {}
    var items = [DispatchWorkItem](repeating: none, count: count)
    let memory = TimerMemory(count: count) { count in
      for index in 0..<count {
        let item = DispatchWorkItem { fired.add(1) }
        queue.asyncAfter(deadline: .now() + .milliseconds(3_600_000 + index), execute: item)
        items[index] = item
      }
      queue.sync {}
    } disarm: { count in
      cancelled = 0
      for index in 0..<count {
        items[index].cancel()
        if items[index].isCancelled { cancelled += 1 }
        items[index] = none
      }
      queue.sync {}
      verify(cancelled, equals: count, "work items that are cancelled")
    }
    verify(fired.value, equals: 0, "timers that fired an hour early")
    return memory.measurements(count, check: cancelled)
  }

  /// One-shot timers, one after the other, on a machine with nothing else to do.
  private static func timerLateness(milliseconds: Int, samples: Int) -> Row {
    let name = "timer-lateness-\(milliseconds)-ms"
    let what = "how long after its deadline, \(milliseconds) ms ahead, a timer's handler runs"
    return Row(
      name,
      [
        Figure("\(name)-median", .nanoseconds, "\(what): median"),
        Figure("\(name)-p99", .nanoseconds, "\(what): 99 of 100 are quicker"),
      ]
    ) { scale in
      let count = scale.count(samples)
      let queue = DispatchQueue(label: "timer")
      let fired = DispatchSemaphore(value: 0)
      let firedAt = Cell()
      let timer = DispatchSource.makeTimerSource(flags: .strict, queue: queue)
      timer.setEventHandler {
        firedAt.value = now()
        fired.signal()
      }
      timer.resume()
      var lateness: [Int] = []
      // The first three start the runtime's threads.
      for index in -3..<count {
        let start = now()
        timer.schedule(deadline: .now() + .milliseconds(milliseconds), leeway: .nanoseconds(0))
        fired.wait()
        if index >= 0 { lateness.append(firedAt.value - start - milliseconds * 1_000_000) }
      }
      timer.cancel()
      queue.sync {}
      lateness.sort()
      verify(lateness.count, equals: count, "timers that fired")
      verify(lateness[0] >= 0, equals: true, "no timer fired early")
      return [lateness[count / 2], lateness[(count * 99 - 1) / 100]].map {
        Measurement(value: Double($0), operations: count, check: count)
      }
    }
  }
}

/// The figures of a row about timers that never fire.
private struct TimerMemory {
  /// Nanoseconds for a timer: making it, cancelling it, and the runtime's other work for it.
  let time: Double
  /// Bytes for a timer while all of them are armed.
  let peak: Double
  /// Bytes for a timer that remain after all are cancelled and released.
  let left: Double

  static func figures(_ row: String, _ what: String) -> [Figure] {
    [
      Figure("\(row)-time", .nanoseconds, "\(what): time for making and cancelling one"),
      Figure("\(row)-peak", .bytes, "\(what): growth of private resident memory for each armed timer"),
      Figure("\(row)-left", .bytes, "\(what): what is left of it when all are cancelled"),
    ]
  }

  func measurements(_ count: Int, check: Int) -> [Measurement] {
    [time, peak, left].map { Measurement(value: $0, operations: count, check: check) }
  }

  /// Measures one round of `arm` and `disarm` after a small one as a warm-up, in a process where little else has run.
  /// `disarm` returns when everything is released.
  init(count: Int, arm: (Int) -> Void, disarm: (Int) -> Void) {
    prepareToMeasureMemory()
    let few = min(count, 1_000)
    arm(few)
    disarm(few)
    bench_trim_heap()
    _ = privateResidentBytes()
    let before = privateResidentBytes()
    var nanoseconds = elapsed { arm(count) }
    let peak = privateResidentBytes() - before
    nanoseconds += elapsed { disarm(count) }
    bench_trim_heap()
    let left = privateResidentBytes() - before
    time = Double(nanoseconds) / Double(count)
    self.peak = Double(max(peak, 0)) / Double(count)
    self.left = Double(max(left, 0)) / Double(count)
  }
}
