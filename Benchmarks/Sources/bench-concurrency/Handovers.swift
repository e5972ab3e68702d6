import CBench

/// Tasks that give work to one another and to the main actor.
extension Row {
  static let handovers = [
    asyncStream,
    detachedValueOnMainActor,
    detachedWorkOnMainActor,
    mainActorFromDetachedTasks,
  ]

  private static let asyncStream = Row(
    "async-stream", count: 400_000,
    "one task yields numbers to an AsyncStream, another reads them"
  ) { count in
    let (stream, continuation) = AsyncStream.makeStream(of: Int.self)
    let reader = Task.detached { await stream.reduce(0, +) }
    for index in 0..<count { continuation.yield(index) }
    continuation.finish()
    verify(await reader.value, equals: sumOfIndices(below: count), "the sum of the numbers read")
  }

  private static let detachedValueOnMainActor = Row(
    "detached-value-on-main-actor", count: 50_000,
    "the main actor starts a detached task and waits for its value, one after the other"
  ) { count in
    let sum = await sumOfDetached(count, work: 0)
    verify(sum, equals: sumOfIndices(below: count), "the sum of the results")
  }

  /// The main thread and a worker compute in turn. The time beyond 10 µs is that of two hand-overs.
  private static let detachedWorkOnMainActor = Row(
    "detached-work-on-main-actor", count: 10_000,
    "the same, where the task and the main actor compute for 5 µs each"
  ) { count in
    let sum = await sumOfDetached(count, work: 5_000)
    verify(sum, equals: sumOfIndices(below: count), "the sum of the results")
  }

  private static let mainActorFromDetachedTasks = Row(
    "main-actor-from-detached-tasks", count: 100_000,
    "eight detached tasks visit the main actor: time for a visit"
  ) { count in
    let board = Board()
    let tasks = (0..<8).map { _ in
      Task.detached { for _ in 0..<(count / 8) { await board.visit() } }
    }
    for task in tasks { await task.value }
    verify(await board.visits, equals: count / 8 * 8, "visits to the main actor")
  }
}

@MainActor
private func sumOfDetached(_ count: Int, work nanoseconds: Int) async -> Int {
  var sum = 0
  for index in 0..<count {
    sum += await Task.detached {
      compute(nanoseconds)
      return index
    }.value
    compute(nanoseconds)
  }
  return sum
}

private func compute(_ nanoseconds: Int) {
  guard nanoseconds > 0 else { return }
  let end = now() + nanoseconds
  while now() < end {}
}

@MainActor
private final class Board {
  private(set) var visits = 0
  func visit() { visits += 1 }
}
