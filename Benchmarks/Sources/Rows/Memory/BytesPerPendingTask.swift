extension Row {
  static let bytesPerPendingTask = Row(
    "bytes-per-pending-task", .bytes,
    "growth of private resident memory for each task (one captured word) on a suspended serial queue"
  ) { scale in
    let count = scale.count(1_000_000)
    prepareToMeasureMemory()
    let ran = Cell()
    func submit(_ tasks: Int, onto queue: DispatchQueue) {
      for _ in 0..<tasks {
        queue.async { ran.add(1) }
      }
    }
    // These stay pending, so that the measured tasks cannot move into memory that they left.
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
