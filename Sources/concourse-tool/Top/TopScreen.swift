/// Lays out a frame as lines of text for a screen of a given size.
struct TopScreen {
  let frame: TopFrame
  let state: TopState
  let columns: Int
  /// nil for a text of any length.
  let height: Int?
  let abilities: ScreenLine.Abilities
  /// The name of code.
  var function: (UInt64) -> String = { "0x" + String($0, radix: 16) }

  /// Exactly `height` lines, if there is a height.
  func lines() -> [ScreenLine] {
    var lines: [ScreenLine]
    switch state.view {
    case .help: lines = header() + help()
    case .queue(let id): lines = header() + detail(of: id)
    case .tasks: lines = header() + tasks()
    case .all: lines = overview()
    }
    guard let height else { return lines }
    if lines.count > height - 1 { lines.removeLast(lines.count - max(height - 1, 0)) }
    lines += (lines.count..<max(height - 1, lines.count)).map { _ in ScreenLine() }
    return lines + [footer()]
  }

  func fit(_ text: String, _ width: Int, right: Bool = false) -> String {
    DisplayText.fit(text, width, abilities, right: right)
  }

  static func number(_ value: Double) -> String {
    func digits(_ value: Double, _ unit: String) -> String {
      let tenths = Int((value * 10).rounded())
      return value < 99.95 ? "\(tenths / 10).\(tenths % 10)\(unit)" : "\(Int(value.rounded()))\(unit)"
    }
    switch value {
    case ..<0.05: return "0"
    case ..<10: return digits(value, "")
    case ..<9999.5: return "\(Int(value.rounded()))"
    case ..<999_500: return digits(value / 1e3, "k")
    case ..<999.5e6: return digits(value / 1e6, "M")
    default: return digits(value / 1e9, "G")
    }
  }

  static func number(_ count: Int) -> String {
    count < 10_000 ? "\(count)" : number(Double(count))
  }

  func time(_ nanoseconds: UInt64?) -> String { nanoseconds.map(RecordingText.duration) ?? "-" }

  func share(_ part: UInt64) -> String {
    let percent = Int((Double(part) * 100 / Double(frame.interval.nanoseconds)).rounded())
    return percent == 0 ? "-" : "\(percent) %"
  }

  /// A part of a line, which is shown whole or not at all.
  struct Part {
    var separator = ""
    var text: String
    var style = ScreenLine.Style.plain
    /// On a narrow screen the highest goes first; 0 stays.
    var rank = 0

    var width: Int { DisplayText.width(separator) + DisplayText.width(text) }
  }

  func line(_ title: String, _ parts: [Part]) -> ScreenLine {
    var shown = parts
    let room = columns - DisplayText.width(title) + DisplayText.width(parts[0].separator)
    while shown.reduce(0, { $0 + $1.width }) > room, let last = shown.map(\.rank).max(), last > 0 {
      shown.removeAll { $0.rank == last }
    }
    var line = ScreenLine(title, .heading)
    for (index, part) in shown.enumerated() {
      if index > 0 { line.add(part.separator) }
      line.add(part.text, part.style)
    }
    return line
  }

  /// As many lines as the parts need, each of which stays whole if a line has room for it.
  func lines(_ title: String, _ parts: [Part]) -> [ScreenLine] {
    var lines = [ScreenLine(fit(title, 7), .heading)]
    let room = max(columns - 7, 1)
    for (index, part) in parts.enumerated() {
      let text =
        DisplayText.width(part.text) > room
        ? DisplayText.fitEnds(part.text, room, abilities) : part.text
      if index > 0 {
        if lines.last!.width + part.width > columns {
          lines.append(ScreenLine(fit("", 7)))
        } else {
          lines[lines.count - 1].add(part.separator)
        }
      }
      lines[lines.count - 1].add(text, part.style)
    }
    return lines
  }

  /// A sentence, on as many lines as it needs. A number stays with its unit.
  func sentence(_ title: String, _ text: String, _ style: ScreenLine.Style) -> [ScreenLine] {
    var parts: [Part] = []
    for word in text.split(separator: " ") {
      let isUnit = ["ns", "us", "ms", "s", "%"].contains(word.prefix { $0 != "," && $0 != "." })
      if isUnit, let last = parts.indices.last {
        parts[last].text += " " + word
      } else {
        parts.append(Part(separator: " ", text: String(word), style: style))
      }
    }
    return lines(title, parts)
  }

  func header() -> [ScreenLine] {
    let interval = frame.interval
    var lines = [titleLine()]
    var pool = [Part(text: frame.pool == nil ? "unknown" : "no threads yet")]
    if let numbers = frame.pool, numbers.limit > 0 {
      pool = [
        Part(text: "\(count(numbers.threads, "thread")): ", rank: 3),
        Part(text: "\(numbers.active) active", style: numbers.active > 0 ? .good : .plain),
        Part(text: " of \(numbers.width)"),
        Part(
          separator: ", ", text: "\(numbers.blocked) blocked", style: numbers.blocked > 0 ? .warning : .plain,
          rank: 1),
        Part(separator: ", ", text: "\(numbers.parked) parked", rank: 4),
        Part(
          separator: ", ", text: "\(numbers.waiting) waiting",
          style: numbers.waiting > numbers.width ? .warning : .plain, rank: 2),
        Part(text: "; limit \(numbers.limit)", style: .dim, rank: 5),
      ]
    }
    lines.append(line("POOL   ", pool))
    var items = [
      Part(text: "\(Self.number(interval.rate(frame.started)))/s", style: .bold), Part(text: " started"),
      Part(separator: ", ", text: "\(Self.number(interval.rate(frame.submitted)))/s submitted", rank: 2),
      Part(separator: ", ", text: "\(Self.number(frame.parallelism)) at once", rank: 1),
      Part(
        separator: ", ", text: "\(Self.number(interval.rate(interval.woken)))/s wake-ups", style: .dim,
        rank: 3),
    ]
    if interval.pauses > 0 {
      items.append(Part(separator: "; ", text: "recording was off", style: .warning, rank: 1))
    }
    lines.append(line("ITEMS  ", items))
    if let tasks = frame.tasks, !tasks.isEmpty { lines.append(line("TASKS  ", summary(tasks))) }
    if interval.lost > 0 {
      let number = Self.number(Int(clamping: interval.lost))
      lines += sentence("LOST", "\(number) events: rates and counts are too low. ? says what helps", .warning)
    }
    if let alarm = frame.alarm {
      lines += sentence("ALARM", alarm.prefix(1).uppercased() + alarm.dropFirst(), .alarm)
    }
    return lines + [ScreenLine()]
  }

  /// The number of the process is never cut, only the program's name.
  private func titleLine() -> ScreenLine {
    let seconds = Double(frame.interval.nanoseconds) / 1e9
    let frozen = state.isFrozen ? "FROZEN  " : ""
    let process = "(\(frame.process))"
    let program = min(DisplayText.width(frame.program), 12)
    var (left, right) = ("", "")
    for candidate in [
      (" concourse top   ", "\(frozen)\(frame.clock)  every \(Self.number(seconds)) s "),
      (" ", "\(frozen)\(frame.clock)  every \(Self.number(seconds)) s "), (" ", "\(frozen)\(frame.clock) "),
      (" ", frozen), (" ", ""),
    ] {
      (left, right) = candidate
      if left.utf8.count + program + 2 + process.utf8.count + DisplayText.width(right) <= columns { break }
    }
    let space = max(columns - DisplayText.width(right), 0)
    let room = max(space - left.utf8.count - process.utf8.count - 2, 0)
    let name = fit(frame.program, min(room, DisplayText.width(frame.program)))
    return ScreenLine(fit("\(left)\(name) \(process)", space) + right, .title)
  }

  func footer() -> ScreenLine {
    if state.isEditingFilter {
      return ScreenLine("filter: \(state.filter)_   Enter keeps it, Esc drops it", .bold)
    }
    var keys: [(key: String, meaning: String, rank: Int)]
    switch state.view {
    case .all:
      keys = [
        ("q", "quit", 0), ("?", "help", 1), ("s", "sort: \(state.order.rawValue)", 3),
        ("/", state.filter.isEmpty ? "filter" : "filter: \(state.filter)", 4), ("f", "freeze", 5),
        ("a", "idle", 6),
      ]
      if frame.tasks?.isEmpty == false { keys.append(("t", "tasks", 3)) }
      keys.append(("Enter", "look into", 2))
    case .queue:
      keys = [
        ("q", "quit", 0), ("Esc", "back", 1), ("Up Down", "next queue", 3), ("f", "freeze", 4),
        ("?", "help", 2),
      ]
    case .tasks:
      keys = [
        ("q", "quit", 0), ("Esc", "back", 1), ("Up Down", "scroll", 3), ("f", "freeze", 4), ("?", "help", 2),
      ]
    case .help: keys = [("q", "quit", 0), ("Esc", "back", 1)]
    }
    return line(
      "",
      keys.flatMap {
        [
          Part(separator: "   ", text: $0.key, style: .bold, rank: $0.rank),
          Part(text: " \($0.meaning)", style: .dim, rank: $0.rank),
        ]
      })
  }
}
