extension Row {
  static let bytesPerIdleSerialQueue = Row(
    "bytes-per-idle-serial-queue", .bytes,
    "growth of private resident memory for each serial queue that was used once and is idle"
  ) { scale in
    let count = scale.count(200_000)
    prepareToMeasureMemory()
    let uses = Cell()
    func makeUsedQueue() -> DispatchQueue {
      let queue = DispatchQueue(label: "idle")
      // What a queue allocates when it is first used belongs to it, and so does a page of it that
      // nobody has touched yet.
      queue.sync { uses.add(1) }
      return queue
    }
    let warmUp = (0..<1_000).map { _ in makeUsedQueue() }
    uses.value = 0
    // The array's own memory is resident before the first measurement.
    var queues = [DispatchQueue](repeating: warmUp[0], count: count)
    let growth = residentGrowth {
      for index in 0..<count { queues[index] = makeUsedQueue() }
    }
    verify(uses.value, equals: count, "queues that were used")
    for queue in queues { queue.sync { uses.add(1) } }
    verify(uses.value, equals: 2 * count, "queues that still work")
    withExtendedLifetime(warmUp) {}
    return Measurement(value: Double(growth) / Double(count), operations: count, check: uses.value)
  }
}
