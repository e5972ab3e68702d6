extension Row {
  static let globalAsyncGroupWait = Row(
    "global-async-group-wait", .nanoseconds,
    "fan-out: one thread asyncs tasks of a group onto a global queue, then waits for the group"
  ) { scale in
    let count = scale.count(500_000)
    let queue = DispatchQueue.global()
    let slots = Slots(count: count)
    let value = nanosecondsPerOperation(count) {
      let group = DispatchGroup()
      let time = elapsed {
        for index in 0..<count {
          queue.async(group: group) { slots.mark(index) }
        }
        group.wait()
      }
      verify(slots.takeMarkedOnce(), equals: count, "tasks that ran exactly once")
      return time
    }
    return Measurement(value: value, operations: count, check: count)
  }
}
