extension Row {
  static let contendedActor = Row(
    name: "contended-actor", question: "eight tasks go to and fro between two default actors", count: 400_000
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

  /// The runtime goes to an idle actor on the same thread; one that is busy, or that has more to do when a
  /// thread leaves it, becomes a job of the library's.
  static let sharedActor = [2, 8, 64].map { callers in
    Row(
      name: "contended-actor-\(callers)",
      question: "\(callers) tasks, each on an actor of its own, call one shared actor: time for a call",
      count: 400_000
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
}

private actor Player {
  private(set) var strokes = 0
  func play() { strokes += 1 }
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
