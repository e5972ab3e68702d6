extension Row {
  static let asyncAfterManyTimers = Row(
    "async-after-many-timers", .nanoseconds,
    "200,000 calls of asyncAfter, each 1 ms ahead: cost of a timer until all have fired"
  ) { scale in
    let count = scale.count(200_000)
    let queue = DispatchQueue(label: "timers")
    let allFired = DispatchSemaphore(value: 0)
    let fired = Cell()
    let value = nanosecondsPerOperation(count) {
      fired.value = 0
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
      verify(fired.value, equals: count, "timers that fired")
      verify(time >= 1_000_000, equals: true, "the last timer did not fire early")
      return time
    }
    return Measurement(value: value, operations: count, check: fired.value)
  }
}
