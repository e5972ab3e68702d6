import CBench

extension Row {
  static let objects: [Row] = [
    createAndReleaseSerialQueue,
    bytesPerIdleSerialQueue,
    bytesPerPendingTask,
  ]

  private static let createAndReleaseSerialQueue = Row(
    "create-and-release-serial-queue", count: 1_000_000,
    "one thread creates a labelled serial queue and releases it"
  ) { count in
    let result = perOperation(count) {
      elapsed {
        for _ in 0..<count {
          let queue = DispatchQueue(label: "short-lived")
          // The address escapes, so that the compiler cannot remove the queue.
          // SAFETY: the address is never dereferenced.
          bench_opaque(Int(bitPattern: Unmanaged.passUnretained(queue).toOpaque()))
        }
      }
    }
    // Such a queue must work.
    let sum = Cell()
    DispatchQueue(label: "short-lived").sync { sum.add(count) }
    verify(sum.value, equals: count, "a queue works")
    return result
  }

  private static let bytesPerIdleSerialQueue = Row(
    "bytes-per-idle-serial-queue", .bytes, count: 200_000,
    "growth of private resident memory for each serial queue that was used once and is idle"
  ) { count in
    prepareToMeasureMemory()
    let uses = Cell()
    func makeUsedQueue() -> DispatchQueue {
      let queue = DispatchQueue(label: "idle")
      // Memory that a queue allocates or touches when it is first used belongs to it.
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

  private static let bytesPerPendingTask = Row(
    "bytes-per-pending-task", .bytes, count: 1_000_000,
    "growth of private resident memory for each task (one captured word) on a suspended serial queue"
  ) { count in
    prepareToMeasureMemory()
    let ran = Cell()
    func submit(_ tasks: Int, onto queue: DispatchQueue) {
      for _ in 0..<tasks {
        queue.async { ran.add(1) }
      }
    }
    // These stay pending, so that the measured tasks cannot reuse their memory.
    let warmUp = DispatchQueue(label: "warm-up")
    warmUp.suspend()
    submit(1_000, onto: warmUp)

    let queue = DispatchQueue(label: "suspended")
    queue.suspend()
    let growth = residentGrowth { submit(count, onto: queue) }
    verify(ran.value, equals: 0, "no task ran on a suspended queue")
    queue.resume()
    queue.sync {}
    verify(ran.value, equals: count, "tasks that ran once the queue was resumed")
    warmUp.resume()
    warmUp.sync {}
    verify(ran.value, equals: count + 1_000, "tasks of both queues")
    return Measurement(value: Double(growth) / Double(count), operations: count, check: ran.value)
  }
}
