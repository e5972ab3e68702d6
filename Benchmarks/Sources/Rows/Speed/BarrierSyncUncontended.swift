extension Row {
  static let barrierSyncUncontended = Row(
    "barrier-sync-uncontended", .nanoseconds,
    "one thread writes under the barrier of an idle concurrent queue"
  ) { scale in
    let count = scale.count(2_000_000)
    let queue = DispatchQueue(label: "concurrent", attributes: .concurrent)
    let sum = Cell()
    let value = nanosecondsPerOperation(count) {
      sum.value = 0
      let time = elapsed {
        for index in 0..<count {
          queue.sync(flags: .barrier) { sum.add(index) }
        }
      }
      verify(sum.value, equals: sumOfIndices(below: count), "sum over all barriers")
      return time
    }
    return Measurement(value: value, operations: count, check: sum.value)
  }
}
