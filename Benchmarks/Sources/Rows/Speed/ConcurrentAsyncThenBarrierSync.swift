extension Row {
  static let concurrentAsyncThenBarrierSync = Row(
    "concurrent-async-then-barrier-sync", .nanoseconds,
    "one thread asyncs tasks onto a concurrent queue, then waits for them with a barrier"
  ) { scale in
    let count = scale.count(500_000)
    let queue = DispatchQueue(label: "concurrent", attributes: .concurrent)
    let slots = Slots(count: count)
    let value = nanosecondsPerOperation(count) {
      let time = elapsed {
        for index in 0..<count {
          queue.async { slots.mark(index) }
        }
        queue.sync(flags: .barrier) {}
      }
      verify(slots.takeMarkedOnce(), equals: count, "tasks that ran exactly once, before the barrier")
      return time
    }
    return Measurement(value: value, operations: count, check: count)
  }
}
