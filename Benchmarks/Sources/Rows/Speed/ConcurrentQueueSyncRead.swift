extension Row {
  static let concurrentQueueSyncRead = Row(
    "concurrent-queue-sync-read", .nanoseconds,
    "one thread reads a value under the shared side of a concurrent queue"
  ) { scale in
    let count = scale.count(5_000_000)
    let queue = DispatchQueue(label: "concurrent", attributes: .concurrent)
    let guarded = Cell()
    guarded.value = 3
    let total = Cell()
    let value = nanosecondsPerOperation(count) {
      total.value = 0
      let time = elapsed {
        for _ in 0..<count {
          queue.sync { total.add(guarded.value) }
        }
      }
      verify(total.value, equals: 3 * count, "sum of what was read")
      return time
    }
    return Measurement(value: value, operations: count, check: total.value)
  }
}
