extension Row {
  static let syncUncontended = Row(
    "sync-uncontended", .nanoseconds,
    "one thread enters and leaves an idle serial queue"
  ) { scale in
    let count = scale.count(5_000_000)
    let queue = DispatchQueue(label: "serial")
    let sum = Cell()
    let value = nanosecondsPerOperation(count) {
      sum.value = 0
      let time = elapsed {
        for index in 0..<count {
          queue.sync { sum.add(index) }
        }
      }
      verify(sum.value, equals: sumOfIndices(below: count), "sum over all critical sections")
      return time
    }
    return Measurement(value: value, operations: count, check: sum.value)
  }
}
