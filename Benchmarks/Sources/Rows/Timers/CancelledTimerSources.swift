extension Row {
  static let cancelledTimerSources = Row(
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
      // A runtime that arms on another thread has to be done with it.
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
    // A source that was never activated may not be released on every runtime.
    never.resume()
    never.cancel()
    return memory.measurements(count, check: cancelled.value)
  }
}
