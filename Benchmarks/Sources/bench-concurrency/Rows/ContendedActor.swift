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
}

private actor Player {
  private(set) var strokes = 0
  func play() { strokes += 1 }
}
