extension Row {
  static let taskYield = Row(
    name: "task-yield", question: "four tasks yield to one another: time for a yield", count: 400_000
  ) { count in
    let yields = await withTaskGroup(of: Int.self) { group in
      for _ in 0..<4 {
        group.addTask {
          var yields = 0
          for _ in 0..<(count / 4) {
            await Task.yield()
            yields += 1
          }
          return yields
        }
      }
      return await group.reduce(0, +)
    }
    verify(yields, equals: count / 4 * 4, "yields")
  }
}
