extension Row {
  /// One-shot timers, one after the other, on a machine with nothing else to do.
  static func timerLateness(milliseconds: Int, samples: Int) -> Row {
    let name = "timer-lateness-\(milliseconds)-ms"
    let what = "how long after its deadline, \(milliseconds) ms ahead, a timer's handler runs"
    return Row(
      name,
      [
        .init("\(name)-median", .nanoseconds, "\(what): median"),
        .init("\(name)-p99", .nanoseconds, "\(what): 99 of 100 are quicker"),
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
      // The first ones start the runtime's threads.
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
