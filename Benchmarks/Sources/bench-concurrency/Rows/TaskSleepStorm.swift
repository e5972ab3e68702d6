extension Row {
  static let taskSleepStorm = Row(
    name: "task-sleep-storm", question: "100,000 tasks sleep 1 ms each at the same time, until all are awake",
    count: 100_000
  ) { count in
    let start = now()
    let early = await withTaskGroup(of: Bool.self) { group in
      for _ in 0..<count {
        group.addTask {
          let asleep = now()
          do {
            try await Task.sleep(nanoseconds: 1_000_000)
          } catch {
            fail("a sleep ended with \(error)")
          }
          return now() - asleep < 1_000_000
        }
      }
      return await group.reduce(into: 0) { early, isEarly in early += isEarly ? 1 : 0 }
    }
    verify(early, equals: 0, "tasks that woke early")
    verify(now() - start < 1_000_000 ? 1 : 0, equals: 0, "all woke early")
  }
}
