import Dispatch

extension Row {
  static let actorsOnQueuesPingPong = Row(
    name: "actors-on-queues-ping-pong",
    question: "one task goes to and fro between two actors whose executors are serial queues",
    count: 200_000
  ) { count in
    let (ping, pong) = (Player("ping"), Player("pong"))
    for _ in 0..<(count / 2) {
      await ping.play()
      await pong.play()
    }
    let strokes = await ping.strokes + pong.strokes
    verify(strokes, equals: count / 2 * 2, "strokes")
  }
}

private actor Player {
  private let executor: QueueExecutor
  private(set) var strokes = 0

  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  init(_ label: String) { executor = QueueExecutor(label) }

  func play() { strokes += 1 }
}

private final class QueueExecutor: SerialExecutor {
  private let queue: DispatchQueue

  init(_ label: String) { queue = DispatchQueue(label: label) }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
  }
}
