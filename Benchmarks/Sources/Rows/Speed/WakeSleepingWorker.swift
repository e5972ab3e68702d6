extension Row {
  static let wakeSleepingWorker = Row(
    "wake-sleeping-worker", .nanoseconds,
    "async onto a queue whose workers all sleep, and be woken by its semaphore: the round trip"
  ) { scale in
    let count = scale.count(1_000)
    let queue = DispatchQueue(label: "sleepy")
    let answer = DispatchSemaphore(value: 0)
    let trips = Cell()
    let value = nanosecondsPerOperation(count) {
      trips.value = 0
      var time = 0
      for _ in 0..<count {
        waitUntilOtherThreadsSleep()
        time += elapsed {
          queue.async {
            trips.add(1)
            answer.signal()
          }
          answer.wait()
        }
      }
      verify(trips.value, equals: count, "round trips")
      return time
    }
    return Measurement(value: value, operations: count, check: trips.value)
  }
}
