extension Row {
  static let groupEnterLeave = Row(
    "group-enter-leave", .nanoseconds,
    "one thread enters an empty group and leaves it"
  ) { scale in
    let count = scale.count(5_000_000)
    let group = DispatchGroup()
    let value = nanosecondsPerOperation(count) {
      let time = elapsed {
        for _ in 0..<count {
          group.enter()
          group.leave()
        }
      }
      verify(group.wait(timeout: .now()), equals: .success, "the group is empty")
      return time
    }
    return Measurement(value: value, operations: count, check: count)
  }
}
