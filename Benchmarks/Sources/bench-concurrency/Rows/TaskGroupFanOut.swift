extension Row {
  static let taskGroupFanOut = Row(
    name: "task-group-fan-out", question: "a million child tasks of one group, until all results are in",
    count: 1_000_000
  ) { count in
    let sum = await withTaskGroup(of: Int.self) { group in
      for index in 0..<count { group.addTask { index } }
      return await group.reduce(0, +)
    }
    verify(sum, equals: sumOfIndices(below: count), "the sum of what the tasks returned")
  }
}
