/// The view of the tasks of Swift Concurrency: what they do, and where in the program.
extension TopScreen {
  /// Rows of a text.
  private static let mostInText = 20
  /// From this width on, a place is beside what is done there.
  private static let wide = 120
  private static let countWidth = 8

  /// How many tasks are in which state, for a line of every view.
  func summary(_ tasks: TaskSummary) -> [Part] {
    let ranks: [TaskInfo.State: Int] = [.running: 3, .enqueued: 2, .created: 4, .completed: 5]
    let numbers = tasks.counts.words.map {
      Part(separator: ", ", text: "\(Self.number($0.number)) \($0.name)", rank: ranks[$0.state] ?? 0)
    }
    return numbers + [Part(separator: "; ", text: age(tasks), style: .dim, rank: 1)]
  }

  /// Tasks are read more rarely than the rest, if there are many.
  private func age(_ tasks: TaskSummary) -> String {
    let seconds = tasks.age / 1_000_000_000
    if seconds == 0 { return "now" }
    return seconds < 120 ? "\(seconds) s ago" : "\(seconds / 60) min ago"
  }

  func tasks() -> [ScreenLine] {
    guard let tasks = frame.tasks else { return [ScreenLine("The tasks are being read.", .dim)] }
    if let problem = tasks.problem { return sentence("TASKS", problem, .dim) }
    let places = tasks.places
    guard !places.isEmpty else {
      let text = "There are no tasks of Swift Concurrency" + (tasks.isEmpty ? "." : " that have not ended.")
      return [ScreenLine(text, .dim)]
    }
    let isWide = columns >= Self.wide
    var shown = min(Self.mostInText, places.count)
    if let height {
      // The title of the table, and the footer.
      let room = height - header().count - 2
      shown = min(max(isWide ? room : room / 2, 1), places.count)
    }
    let isPart = shown < places.count
    let first = height != nil && isPart ? min(state.firstTask, places.count - 1) : 0
    let last = min(first + shown, places.count)
    let room = max(columns - Self.countWidth - 2, 0)
    // What they do, beside the place: half of the width, or what the longest place leaves.
    func longest(_ text: (TaskSummary.Place) -> String) -> Int {
      places.map { DisplayText.width(text($0)) }.max() ?? 0
    }
    let half = max(room / 2, room - 2 - longest { $0.place ?? "" })
    let width = isWide ? min(longest(\.sentence), half) : room
    var titles = [
      Part(text: isWide ? fit("ACTIVITY", width) + "  PLACE" : "ACTIVITY AND PLACE", style: .bold)
    ]
    if isPart {
      titles.append(
        Part(separator: " ", text: "(\(first + 1) to \(last) of \(places.count))", style: .bold, rank: 1))
    }
    return [line(fit("TASKS", Self.countWidth, right: true) + "  ", titles)]
      + places[first..<last].flatMap { lines(of: $0, width, room, isWide: isWide) }
  }

  /// - Parameters:
  ///   - width: Of what they do.
  ///   - room: Of that and the place.
  private func lines(of row: TaskSummary.Place, _ width: Int, _ room: Int, isWide: Bool) -> [ScreenLine] {
    var line = ScreenLine(fit(Self.number(row.count), Self.countWidth, right: true) + "  ")
    line.add(DisplayText.fitEnds(row.sentence, width, abilities))
    guard let place = row.place else { return [line] }
    if isWide {
      line.add("  " + DisplayText.fitEnds(place, max(room - width - 2, 0), abilities), .dim)
      return [line]
    }
    let indent = fit("", Self.countWidth + 2) + "at "
    return [line, ScreenLine(indent + DisplayText.fitEnds(place, max(room - 3, 0), abilities), .dim)]
  }
}
