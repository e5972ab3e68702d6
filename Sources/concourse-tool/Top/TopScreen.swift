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

  private struct Column {
    var title: String
    var width: Int
    /// On a narrow screen the highest goes first.
    var rank: Int
    var order: TopState.Order?
    var text: (TopFrame.Queue) -> String
  }

  /// Exactly `height` lines, if there is a height.
  func lines() -> [ScreenLine] {
    var lines: [ScreenLine]
    switch state.view {
    case .help: lines = header() + help()
    case .queue(let id): lines = header() + detail(of: id)
    case .all: lines = overview()
    }
    guard let height else { return lines }
    if lines.count > height - 1 { lines.removeLast(lines.count - max(height - 1, 0)) }
    lines += (lines.count..<max(height - 1, lines.count)).map { _ in ScreenLine() }
    return lines + [footer()]
  }

  // MARK: Pieces

  private func fit(_ text: String, _ width: Int, right: Bool = false) -> String {
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

  private static func number(_ count: Int) -> String {
    count < 10_000 ? "\(count)" : number(Double(count))
  }

  private func time(_ nanoseconds: UInt64?) -> String { nanoseconds.map(RecordingText.duration) ?? "-" }

  private func share(_ part: UInt64) -> String {
    let percent = Int((Double(part) * 100 / Double(frame.interval.nanoseconds)).rounded())
    return percent == 0 ? "-" : "\(percent) %"
  }

  /// A part of a line, which is shown whole or not at all.
  private struct Part {
    var separator = ""
    var text: String
    var style = ScreenLine.Style.plain
    /// On a narrow screen the highest goes first; 0 stays.
    var rank = 0

    var width: Int { DisplayText.width(separator) + DisplayText.width(text) }
  }

  private func line(_ title: String, _ parts: [Part]) -> ScreenLine {
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
  private func lines(_ title: String, _ parts: [Part]) -> [ScreenLine] {
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
  private func sentence(_ title: String, _ text: String, _ style: ScreenLine.Style) -> [ScreenLine] {
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

  // MARK: Header and footer

  private func header() -> [ScreenLine] {
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

  private func footer() -> ScreenLine {
    if state.isEditingFilter {
      return ScreenLine("filter: \(state.filter)_   Enter keeps it, Esc drops it", .bold)
    }
    let keys: [(key: String, meaning: String, rank: Int)]
    switch state.view {
    case .all:
      keys = [
        ("q", "quit", 0), ("?", "help", 1), ("s", "sort: \(state.order.rawValue)", 3),
        ("/", state.filter.isEmpty ? "filter" : "filter: \(state.filter)", 4), ("f", "freeze", 5),
        ("a", "idle", 6), ("Enter", "look into", 2),
      ]
    case .queue:
      keys = [
        ("q", "quit", 0), ("Esc", "back", 1), ("Up Down", "next queue", 3), ("f", "freeze", 4),
        ("?", "help", 2),
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

  // MARK: All queues

  private func tableColumns() -> (label: Int, rest: [Column]) {
    let all = [
      Column(title: "RATE", width: 8, rank: 0, order: .rate) {
        Self.number(frame.interval.rate($0.activity.started)) + "/s"
      },
      Column(title: "DEPTH", width: 7, rank: 1, order: .depth) { $0.depth.map { Self.number($0) } ?? "-" },
      Column(title: "WAIT", width: 9, rank: 2, order: .wait) { time($0.activity.wait.median) },
      Column(title: "p99", width: 8, rank: 6, order: .wait) { time($0.activity.wait.percentile(0.99)) },
      Column(title: "RUN", width: 9, rank: 3, order: .run) { time($0.activity.run.median) },
      Column(title: "p99", width: 8, rank: 5, order: .run) { time($0.activity.run.percentile(0.99)) },
      Column(title: "BUSY", width: 7, rank: 4, order: .busy) { share($0.activity.busy) },
    ]
    var shown = all
    func rank(_ column: Column) -> Int { column.order == self.state.order ? column.rank - 10 : column.rank }
    // A label of 16 columns, or of 8 beside a single number.
    while let last = shown.map(rank).max(),
      shown.reduce(2, { $0 + $1.width }) + (shown.count > 1 ? 16 : 8) > columns
    {
      shown.removeAll { rank($0) == last }
    }
    let used = shown.reduce(2) { $0 + $1.width }
    let longest = frame.queues.map { DisplayText.width($0.name) }.max() ?? 0
    // A wide screen has room for the state, too.
    let room = columns - used > 60 ? columns - used - 24 : columns - used
    let label = max(min(room, max(longest + 1, 22)), min(columns - 2, 8))
    let state = columns - used - label
    if state >= 14 {
      shown.append(
        Column(title: "  STATE", width: state, rank: 0) {
          "  " + DisplayText.fitEnds($0.state, state - 2, abilities)
        })
    }
    return (state >= 14 ? label : columns - used, shown)
  }

  private func overview() -> [ScreenLine] {
    let head = header()
    let rows = state.rows(frame)
    var blocked = blockedLines(limit: .max)
    var events = eventLines(limit: .max)
    var shown = rows.count
    if let height {
      // The footer, and the title of the table.
      let room = max(height - head.count - 2, 1)
      let wanted = max(rows.count, 1)
      if wanted + blocked.count + events.count > room {
        shown = min(wanted, max(3, room / 2, room - blocked.count - events.count))
        let left = max(room - shown, 0)
        let forEvents = min(events.count, max(left / 2, left - blocked.count))
        events = forEvents < 3 ? [] : eventLines(limit: forEvents - 2)
        let forBlocked = min(blocked.count, left - events.count)
        blocked = forBlocked < 3 ? [] : blockedLines(limit: forBlocked - 2)
        shown = min(wanted, max(room - blocked.count - events.count, 1))
      }
    }
    return head + table(rows, shown) + blocked + events
  }

  private func table(_ rows: [TopFrame.Queue], _ shown: Int) -> [ScreenLine] {
    let (label, columns) = tableColumns()
    let hidden = rows.count > shown ? " (\(shown) of \(rows.count))" : ""
    var title = ScreenLine()
    let isByName = state.order == .name
    title.add(fit("  QUEUE" + (isByName ? "↓" : "") + hidden, label + 2), isByName ? .heading : .bold)
    var isMarked = false
    for column in columns {
      let isOrder = column.order == state.order
      let mark = isOrder && !isMarked ? "↓" : ""
      isMarked = isMarked || isOrder
      let isLast = column.order == nil
      title.add(fit(column.title + mark, column.width, right: !isLast), isOrder ? .heading : .bold)
    }
    var lines = [title]
    if rows.isEmpty {
      lines.append(
        ScreenLine(
          state.filter.isEmpty ? "  nothing was done on queues" : "  no queue matches the filter", .dim))
    }
    let selected = rows.firstIndex { $0.id == state.selected }
    let first = selected.map { max(0, $0 - shown + 1) } ?? 0
    for (index, queue) in rows.enumerated().dropFirst(first).prefix(shown) {
      let isSelected = index == selected
      var line = ScreenLine()
      let name = (isSelected ? "> " : "  ") + DisplayText.fitEnds(queue.name, label - 1, abilities) + " "
      line.add(fit(name, label + 2), isSelected ? .selected : queue.isAlarming ? .warning : .plain)
      for column in columns {
        let text = fit(column.text(queue), column.width, right: column.order != nil)
        let isQuiet = ["-", "0/s", "0"].contains { text.hasSuffix(" " + $0) }
        line.add(text, isSelected ? .selected : isQuiet ? .dim : .plain)
      }
      lines.append(line)
    }
    return lines
  }

  private func section(_ title: String, _ rows: [ScreenLine], _ total: Int, _ limit: Int) -> [ScreenLine] {
    guard !rows.isEmpty else { return [] }
    var heading = ScreenLine(title, .heading)
    heading.add("  \(total)", .bold)
    if rows.count > limit { heading.add("  (\(limit) of \(count(rows.count, "row")))", .dim) }
    return [ScreenLine(), heading] + rows.prefix(limit)
  }

  private func blockedLines(limit: Int) -> [ScreenLine] {
    func threads(_ row: TopFrame.Blocked) -> String {
      row.threads.count > 1 ? "\(row.threads.count) threads" : "\(row.threads[0])"
    }
    let isNarrow = columns < 80
    let first = isNarrow ? (frame.blocked.map { DisplayText.width(threads($0)) }.max() ?? 0) + 2 : 12
    let second = isNarrow ? 0 : 13
    let room = columns - 2 - first - second - 10
    let rows = frame.blocked.map { row in
      var line = ScreenLine("  " + fit(threads(row), first) + fit(row.role, second))
      line.add(fit(row.blockedFor.map(RecordingText.duration) ?? "", 8, right: true) + "  ", .warning)
      var left = room - DisplayText.width(row.text)
      line.add(left < 0 ? DisplayText.fitEnds(row.text, max(room, 0), abilities) : row.text)
      let words = "; in an item of "
      left -= words.utf8.count
      if let item = row.item, left >= min(DisplayText.width(item), 12) {
        let shown = DisplayText.width(item) <= left ? item : DisplayText.fitEnds(item, left, abilities)
        line.add(words + shown, .dim)
      }
      return line
    }
    return section("BLOCKED THREADS", rows, frame.blockedThreads, limit)
  }

  private func eventLines(limit: Int) -> [ScreenLine] {
    // What they are doing goes before their queues.
    let longest = frame.events.map { DisplayText.width($0.detail) }.max() ?? 0
    let detail = columns - 13 - longest >= 30 ? longest : 0
    let room = max(columns - max(13 + detail, 36), min(columns - 11, 20))
    let rows = frame.events.map { event in
      let rate = Self.number(frame.interval.rate(event.count)) + "/s"
      var name = event.name
      if let queue = event.queue, DisplayText.width(name) > room {
        let left = room - DisplayText.width(event.what) - 4
        name = left >= 9 ? event.what + " on " + DisplayText.fitEnds(queue, left, abilities) : event.what
      }
      var line = ScreenLine("  " + DisplayText.fitEnds(name, room, abilities))
      line.add(fit(rate, 9, right: true), event.count == 0 ? .dim : .plain)
      if detail > 0 { line.add("  " + event.detail, .dim) }
      return line
    }
    return section("TIMERS AND SOURCES", rows, frame.events.count, limit)
  }

  // MARK: One queue

  private static let limits: [UInt64] = [
    1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000,
  ]
  private static let limitNames = [
    "< 1 us", "< 10 us", "< 100 us", "< 1 ms", "< 10 ms", "< 100 ms", "< 1 s", "longer",
  ]

  private func detail(of id: UInt64) -> [ScreenLine] {
    guard let queue = frame.queues.first(where: { $0.id == id }) else {
      return [ScreenLine("The queue is gone, or does nothing now.", .dim)]
    }
    let activity = queue.activity
    func separated(_ texts: [String], _ style: ScreenLine.Style = .plain) -> [Part] {
      texts.map { Part(separator: ", ", text: $0, style: style) }
    }
    func times(_ title: String, _ histogram: DurationHistogram) -> [ScreenLine] {
      guard histogram.count > 0 else { return lines(title, [Part(text: "-", style: .dim)]) }
      return lines(
        title,
        [
          Part(text: "median " + fit(time(histogram.median), 9)),
          Part(text: "p99 " + fit(time(histogram.percentile(0.99)), 9)),
          Part(text: "longest " + fit(time(histogram.longest), 9)),
          Part(text: "mean " + time(histogram.mean)),
        ])
    }
    var result = lines("QUEUE", [Part(text: queue.name, style: .bold)])
    result += lines("", separated(queue.properties.isEmpty ? [queue.kind] : queue.properties, .dim))
    let depth = queue.depth.map { count($0, "item") + " waiting" } ?? "depth unknown"
    result += lines(
      "STATE",
      separated([depth] + (queue.state.isEmpty ? [] : [queue.state]), queue.isAlarming ? .warning : .plain))
    result += lines(
      "RATE",
      separated([
        "\(Self.number(frame.interval.rate(activity.started)))/s started",
        "\(Self.number(frame.interval.rate(activity.submitted)))/s submitted", "busy \(share(activity.busy))",
      ]))
    result += lines("", [Part(text: sparkline(frame.history[id] ?? []), style: .good)])
    result += times("WAIT", activity.wait) + times("RUN", activity.run)
    if activity.syncWait.count > 0 { result += times("SYNC", activity.syncWait) }
    result += [ScreenLine()] + bars(activity)
    let functions = activity.functions.sorted { ($0.value.sum, $1.key) > ($1.value.sum, $0.key) }
    if !functions.isEmpty {
      var shown: [(title: String, width: Int, text: (DurationHistogram) -> String)] = [
        ("RATE", 8, { Self.number(frame.interval.rate($0.count)) + "/s" }), ("MEAN", 9, { time($0.mean) }),
        ("LONGEST", 9, { time($0.longest) }), ("BUSY", 8, { share($0.sum) }),
      ]
      for title in ["LONGEST", "MEAN", "BUSY", "RATE"]
      where shown.reduce(0, { $0 + $1.width }) + 20 > columns { shown.removeAll { $0.title == title } }
      let room = columns - shown.reduce(0) { $0 + $1.width }
      result += [
        ScreenLine(),
        ScreenLine(shown.reduce(fit("FUNCTION", room)) { $0 + fit($1.title, $1.width, right: true) }, .bold),
      ]
      for (code, runs) in functions.prefix(20) {
        var line = ScreenLine(DisplayText.fitEnds(function(code), room - 1, abilities) + " ")
        for column in shown { line.add(fit(column.text(runs), column.width, right: true)) }
        result.append(line)
      }
    }
    return result
  }

  private func sparkline(_ rates: [Double]) -> String {
    let most = max(rates.max() ?? 0, 1e-9)
    let steps: [Character] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"]
    return String(rates.suffix(max(columns - 8, 1)).map { steps[min(Int($0 / most * 8), 7)] })
  }

  /// Two histograms beside each other, of the times that occur.
  private func bars(_ activity: QueueActivity) -> [ScreenLine] {
    let waits = activity.wait.counts(upTo: Self.limits)
    let runs = activity.run.counts(upTo: Self.limits)
    let used = waits.indices.filter { waits[$0] + runs[$0] > 0 }
    guard let first = used.first, let last = used.last else { return [] }
    let room = (columns - 10 - 2 * 10) / 2
    guard room >= 3 else { return [] }
    func bar(_ number: Int, _ all: [Int]) -> String {
      let length = number == 0 ? 0 : max(1, number * room / max(all.max()!, 1))
      return fit(String(repeating: "█", count: length), room)
    }
    func label(_ number: Int) -> String { fit(number == 0 ? "" : Self.number(number), 8, right: true) + " " }
    var title = ScreenLine(fit("", 9) + fit("", 9) + fit("WAIT", room + 1), .bold)
    title.add(fit("", 9) + "RUN", .bold)
    return [title]
      + (first...last).map { index in
        var line = ScreenLine(fit(Self.limitNames[index], 8, right: true) + " ", .dim)
        line.add(label(waits[index]))
        line.add(bar(waits[index], waits) + " ", .warning)
        line.add(label(runs[index]))
        line.add(bar(runs[index], runs), .good)
        return line
      }
  }

  // MARK: Help

  private func help() -> [ScreenLine] {
    let keys = [
      ("q  Ctrl-C", "quit"), ("Up Down  j k", "select a queue; PgUp, PgDn, Home and End too"),
      ("Enter", "look into the queue: its times, functions and history; Esc leads back"),
      ("s", "sort by the next column"), ("r d w x b n", "sort by rate, depth, wait, run, busy or name"),
      ("R", "reverse the order"), ("/", "show only queues whose label contains a text; Esc shows all"),
      ("f  Space", "freeze the view; again to go on"), ("a", "also show idle queues"), ("?  h", "this page"),
    ]
    let terms = [
      ("RATE", "items started, in a second"), ("DEPTH", "items that wait for their start"),
      ("WAIT p99", "from submission to start: median and 99th percentile"),
      ("RUN p99", "from start to end; BUSY: the sum, as part of the interval"),
      ("LOST", Recording.remedy),
    ]
    let left = columns < 80 ? 11 : 16
    func row(_ title: String, _ text: String) -> [ScreenLine] {
      var lines = [ScreenLine("  " + fit(title, left), .bold)]
      for word in text.split(separator: " ") {
        let start = lines.last!.width == left + 2
        if !start, lines.last!.width + 1 + DisplayText.width(String(word)) > columns {
          lines.append(ScreenLine(fit("", left + 2)))
        }
        lines[lines.count - 1].add((lines.last!.width == left + 2 ? "" : " ") + word)
      }
      return lines
    }
    return [ScreenLine("KEYS", .heading)] + keys.flatMap(row) + [ScreenLine("COLUMNS", .heading)]
      + terms.flatMap(row)
  }
}
