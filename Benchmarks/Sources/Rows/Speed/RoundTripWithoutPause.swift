extension Row {
  static let roundTripWithoutPause = Row(
    "round-trip-without-pause", .nanoseconds,
    "async onto a queue and wait for its semaphore, again and again: the round trip"
  ) { scale in
    let count = scale.count(50_000)
    let queue = DispatchQueue(label: "wakeful")
    let answer = DispatchSemaphore(value: 0)
    let trips = Cell()
    let value = nanosecondsPerOperation(count) {
      trips.value = 0
      let time = elapsed {
        for _ in 0..<count {
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
