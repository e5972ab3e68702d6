import Dispatch

extension Row {
  static let actors =
    [
      actorPingPong,
      actorsOnQueuesPingPong,
      contendedActor,
      mainActorHop,
    ] + sharedActor

  /// The control: the runtime of Swift Concurrency switches from one idle actor to another on the same thread, without
  /// a call of the library.
  private static let actorPingPong = Row(
    "actor-ping-pong", count: 2_000_000,
    "one task goes to and fro between two idle default actors"
  ) { count in
    let (ping, pong) = (Player(), Player())
    for _ in 0..<(count / 2) {
      await ping.play()
      await pong.play()
    }
    let strokes = await ping.strokes + pong.strokes
    verify(strokes, equals: count / 2 * 2, "strokes")
  }

  private static let actorsOnQueuesPingPong = Row(
    "actors-on-queues-ping-pong", count: 200_000,
    "one task goes to and fro between two actors whose executors are serial queues"
  ) { count in
    let (ping, pong) = (QueuePlayer("ping"), QueuePlayer("pong"))
    for _ in 0..<(count / 2) {
      await ping.play()
      await pong.play()
    }
    let strokes = await ping.strokes + pong.strokes
    verify(strokes, equals: count / 2 * 2, "strokes")
  }

  private static let contendedActor = Row(
    "contended-actor", count: 400_000,
    "eight tasks go to and fro between two default actors"
  ) { count in
    let (ping, pong) = (Player(), Player())
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<8 {
        group.addTask {
          for _ in 0..<(count / 16) {
            await ping.play()
            await pong.play()
          }
        }
      }
    }
    let strokes = await ping.strokes + pong.strokes
    verify(strokes, equals: count / 16 * 16, "strokes that excluded each other")
  }

  /// The runtime enters an idle actor on the same thread. It submits a job to the library for an actor that is busy, or
  /// that still has work when a thread leaves it.
  private static let sharedActor = [2, 8, 64].map { callers in
    Row(
      "contended-actor-\(callers)", count: 400_000,
      "\(callers) tasks, each on an actor of its own, call one shared actor: time for a call"
    ) { count in
      let shared = Player()
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<callers {
          let caller = Caller(shared)
          group.addTask { await caller.call(count / callers) }
        }
      }
      verify(await shared.strokes, equals: count / callers * callers, "strokes that excluded each other")
    }
  }

  private static let mainActorHop = Row(
    "main-actor-hop", count: 100_000,
    "a task goes to the main actor and back: time for a hop"
  ) { count in
    await Score.reset()
    for _ in 0..<(count / 2) { await Score.play() }
    let strokes = await Score.strokes
    verify(strokes, equals: count / 2, "visits to the main actor")
  }
}

private actor Player {
  private(set) var strokes = 0
  func play() { strokes += 1 }
}

private actor QueuePlayer {
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

private actor Caller {
  private let shared: Player
  private var calls = 0

  init(_ shared: Player) { self.shared = shared }

  func call(_ count: Int) async {
    for _ in 0..<count {
      await shared.play()
      calls += 1
    }
  }
}

@MainActor
private enum Score {
  static var strokes = 0
  static func reset() { strokes = 0 }
  static func play() { strokes += 1 }
}
