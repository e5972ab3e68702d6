extension Row {
  static let serialAsyncOneProducer = Row(
    "serial-async-one-producer", .nanoseconds,
    "one thread asyncs small tasks onto a serial queue: cost of a task until all have run"
  ) { scale in
    let count = scale.count(500_000)
    let queue = DispatchQueue(label: "serial")
    let sum = Cell()
    let value = nanosecondsPerOperation(count) {
      sum.value = 0
      let time = elapsed {
        for index in 0..<count {
          queue.async { sum.add(index) }
        }
        queue.sync {}
      }
      verify(sum.value, equals: sumOfIndices(below: count), "sum over all tasks")
      return time
    }
    return Measurement(value: value, operations: count, check: sum.value)
  }
}
