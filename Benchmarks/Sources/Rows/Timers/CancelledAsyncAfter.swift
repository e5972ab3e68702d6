extension Row {
  static let cancelledAsyncAfter = Row(
    "cancelled-async-after",
    TimerMemory.figures("cancelled-async-after", "a million asyncAfter of a work item an hour ahead")
  ) { scale in
    let count = scale.count(1_000_000)
    let queue = DispatchQueue(label: "timers")
    let fired = Cell()
    var cancelled = 0
    // The array's own memory is resident before the first measurement.
    let none = DispatchWorkItem {}
    var items = [DispatchWorkItem](repeating: none, count: count)
    let memory = TimerMemory(count: count) { count in
      for index in 0..<count {
        let item = DispatchWorkItem { fired.add(1) }
        queue.asyncAfter(deadline: .now() + .milliseconds(3_600_000 + index), execute: item)
        items[index] = item
      }
      queue.sync {}
    } disarm: { count in
      cancelled = 0
      for index in 0..<count {
        items[index].cancel()
        if items[index].isCancelled { cancelled += 1 }
        items[index] = none
      }
      queue.sync {}
      verify(cancelled, equals: count, "work items that are cancelled")
    }
    verify(fired.value, equals: 0, "timers that fired an hour early")
    return memory.measurements(count, check: cancelled)
  }
}
