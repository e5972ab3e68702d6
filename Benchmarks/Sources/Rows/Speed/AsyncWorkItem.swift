extension Row {
  static let asyncWorkItem = Row(
    "async-work-item", .nanoseconds,
    "one thread makes a DispatchWorkItem for each task and asyncs it onto a serial queue"
  ) { scale in
    let count = scale.count(300_000)
    let queue = DispatchQueue(label: "serial")
    let sum = Cell()
    let value = nanosecondsPerOperation(count) {
      sum.value = 0
      let time = elapsed {
        for index in 0..<count {
          queue.async(execute: DispatchWorkItem { sum.add(index) })
        }
        queue.sync {}
      }
      verify(sum.value, equals: sumOfIndices(below: count), "sum over all work items")
      return time
    }
    return Measurement(value: value, operations: count, check: sum.value)
  }
}
