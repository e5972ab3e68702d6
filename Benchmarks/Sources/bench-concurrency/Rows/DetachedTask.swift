extension Row {
  static let detachedTask = Row(
    name: "detached-task", question: "start a detached task, wait for its value", count: 200_000
  ) { count in
    var sum = 0
    for index in 0..<count { sum += await Task.detached { index }.value }
    verify(sum, equals: sumOfIndices(below: count), "the sum of what the tasks returned")
  }
}
