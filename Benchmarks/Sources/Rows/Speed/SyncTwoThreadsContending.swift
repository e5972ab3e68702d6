import CBench

extension Row {
  static let syncTwoThreadsContending = Row(
    "sync-two-threads-contending", .nanoseconds,
    "two threads on two cores enter the same serial queue as fast as they can: time for an entry"
  ) { scale in
    let count = scale.count(200_000)
    let queue = DispatchQueue(label: "serial")
    let entries = Cell()
    let previous = Cell()
    let handovers = Cell()
    let value = nanosecondsPerOperation(count) {
      entries.value = 0
      previous.value = -1
      handovers.value = 0
      let time = elapsed(onThreads: 2) { thread in
        for _ in 0..<(count / 2) {
          queue.sync {
            entries.add(1)
            if previous.value != thread {
              previous.value = thread
              handovers.add(1)
            }
          }
        }
      }
      verify(entries.value, equals: count, "entries that excluded each other")
      // One thread after the other makes two handovers: then nothing was contended. A single core
      // cannot do better.
      verify(handovers.value > 2 || bench_core_count() == 1, equals: true, "the threads met")
      return time
    }
    return Measurement(value: value, operations: count, check: entries.value)
  }
}
