extension Row {
  /// The runtime of Swift Concurrency goes from one idle actor to another on the same thread, without
  /// asking the library at all.
  static let actorPingPong = Row(
    name: "actor-ping-pong", question: "one task goes to and fro between two idle default actors",
    count: 2_000_000
  ) { count in
    let (ping, pong) = (Player(), Player())
    for _ in 0..<(count / 2) {
      await ping.play()
      await pong.play()
    }
    let strokes = await ping.strokes + pong.strokes
    verify(strokes, equals: count / 2 * 2, "strokes")
  }
}

private actor Player {
  private(set) var strokes = 0
  func play() { strokes += 1 }
}
