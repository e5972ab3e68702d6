extension Row {
  static let asyncLet = Row(
    name: "async-let", question: "two async lets, then both results: time for one of the two",
    count: 200_000
  ) { count in
    var sum = 0
    for index in 0..<(count / 2) {
      async let even = echo(2 * index)
      async let odd = echo(2 * index + 1)
      sum += await even + odd
    }
    verify(sum, equals: sumOfIndices(below: count / 2 * 2), "the sum of both")
  }
}

@concurrent
private func echo(_ value: Int) async -> Int { value }
