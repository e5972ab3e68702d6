extension Row {
  static let hopBetweenSerialQueues = Row(
    "hop-between-serial-queues", .nanoseconds,
    "each task asyncs the next one onto the other of two serial queues: cost of a hop"
  ) { scale in
    let count = scale.count(300_000)
    let court = Court()
    let value = nanosecondsPerOperation(count) {
      court.hops.value = 0
      let time = elapsed {
        court.hop(remaining: count)
        court.done.wait()
      }
      verify(court.hops.value, equals: count, "hops, one after the other")
      return time
    }
    return Measurement(value: value, operations: count, check: court.hops.value)
  }
}

private final class Court: Sendable {
  let even = DispatchQueue(label: "even")
  let odd = DispatchQueue(label: "odd")
  let done = DispatchSemaphore(value: 0)
  /// Written by one hop at a time: each is submitted by the one before it.
  let hops = Cell()

  func hop(remaining: Int) {
    guard remaining > 0 else {
      done.signal()
      return
    }
    let queue = remaining & 1 == 0 ? even : odd
    queue.async {
      self.hops.add(1)
      self.hop(remaining: remaining - 1)
    }
  }
}
