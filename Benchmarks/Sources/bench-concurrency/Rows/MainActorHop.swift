extension Row {
  static let mainActorHop = Row(
    name: "main-actor-hop", question: "a task goes to the main actor and back: time for a hop",
    count: 100_000
  ) { count in
    await Score.reset()
    for _ in 0..<(count / 2) { await Score.play() }
    let strokes = await Score.strokes
    verify(strokes, equals: count / 2, "visits to the main actor")
  }
}

@MainActor
private enum Score {
  static var strokes = 0
  static func reset() { strokes = 0 }
  static func play() { strokes += 1 }
}
