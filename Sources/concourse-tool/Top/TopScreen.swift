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

  // MARK: Header and footer

  private func header() -> [ScreenLine] {
    let seconds = Double(frame.interval.nanoseconds) / 1e9
    var right = "\(frame.clock)  every \(Self.number(seconds)) s "
    if state.isFrozen { right = "FROZEN  " + right }
    let left = " concourse top   \(frame.program) (\(frame.process))"
    let space = max(columns - DisplayText.width(right), 0)
    var lines = [ScreenLine(fit(left, space) + right, .title)]

    var pool = ScreenLine("POOL   ", .heading)
    if let numbers = frame.pool, numbers.limit > 0 {
      pool.add("\(count(numbers.threads, "thread")): ")
      pool.add("\(numbers.active) active", numbers.active > 0 ? .good : .plain)
      pool.add(" of \(numbers.width), ")
      pool.add("\(numbers.blocked) blocked", numbers.blocked > 0 ? .warning : .plain)
      pool.add(", \(numbers.parked) parked, ")
      pool.add("\(numbers.waiting) waiting", numbers.waiting > numbers.width ? .warning : .plain)
      pool.add("; limit \(numbers.limit)", .dim)
    } else {
      pool.add(frame.pool == nil ? "unknown" : "no threads yet")
    }
    lines.append(pool)

    let interval = frame.interval
    var items = ScreenLine("ITEMS  ", .heading)
    items.add("\(Self.number(interval.rate(frame.started)))/s", .bold)
    items.add(" started, \(Self.number(interval.rate(frame.submitted)))/s submitted, ")
    items.add("\(Self.number(frame.parallelism)) at once")
    items.add(", \(Self.number(interval.rate(interval.woken)))/s wake-ups", .dim)
    if interval.lost > 0 { items.add("; \(Self.number(Int(clamping: interval.lost))) events lost", .warning) }
    if interval.pauses > 0 { items.add("; recording was off", .warning) }
    lines.append(items)
    if let alarm = frame.alarm {
      var line = ScreenLine("ALARM  ", .alarm)
      line.add(alarm.prefix(1).uppercased() + alarm.dropFirst(), .alarm)
      lines.append(line)
    }
    return lines + [ScreenLine()]
  }

  private func footer() -> ScreenLine {
    if state.isEditingFilter {
      return ScreenLine("filter: \(state.filter)_   Enter keeps it, Esc drops it", .bold)
    }
    let keys: [(String, String)]
    switch state.view {
    case .all:
      keys = [
        ("q", "quit"), ("?", "help"), ("s", "sort: \(state.order.rawValue)"),
        ("/", state.filter.isEmpty ? "filter" : "filter: \(state.filter)"), ("f", "freeze"),
        ("a", "idle"), ("Enter", "look into"),
      ]
    case .queue:
      keys = [("q", "quit"), ("Esc", "back"), ("Up Down", "next queue"), ("f", "freeze"), ("?", "help")]
    case .help: keys = [("q", "quit"), ("Esc", "back")]
    }
    var line = ScreenLine()
    for (index, (key, meaning)) in keys.enumerated() {
      line.add((index == 0 ? "" : "   ") + key, .bold)
      line.add(" \(meaning)", .dim)
    }
    return line
  }

  // MARK: All queues

  private func tableColumns() -> (label: Int, rest: [Column]) {
    let all = [
      Column(title: "RATE", width: 8, order: .rate) {
        Self.number(frame.interval.rate($0.activity.started)) + "/s"
      },
      Column(title: "DEPTH", width: 7, order: .depth) { $0.depth.map { Self.number($0) } ?? "-" },
      Column(title: "WAIT", width: 9, order: .wait) { time($0.activity.wait.median) },
      Column(title: "p99", width: 8, order: .wait) { time($0.activity.wait.percentile(0.99)) },
      Column(title: "RUN", width: 9, order: .run) { time($0.activity.run.median) },
      Column(title: "p99", width: 8, order: .run) { time($0.activity.run.percentile(0.99)) },
      Column(title: "BUSY", width: 7, order: .busy) { share($0.activity.busy) },
    ]
    // On a narrow screen the last columns go first.
    var shown = all
    while shown.count > 1, shown.reduce(2, { $0 + $1.width }) + 14 > columns { shown.removeLast() }
    let used = shown.reduce(2) { $0 + $1.width }
    let longest = frame.queues.map { DisplayText.width($0.name) }.max() ?? 0
    // A wide screen has room for the state, too.
    let room = columns - used > 60 ? columns - used - 24 : columns - used
    let label = max(min(room, max(longest + 1, 22)), min(columns - 2, 8))
    let state = columns - used - label
    if state >= 14 { shown.append(Column(title: "  STATE", width: state) { "  " + $0.state }) }
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
    let rows = frame.blocked.map { row in
      let threads = row.threads.count > 1 ? "\(row.threads.count) threads" : "\(row.threads[0])"
      var line = ScreenLine("  " + fit(threads, 12) + fit(row.role, 13))
      line.add(fit(row.blockedFor.map(RecordingText.duration) ?? "", 8, right: true) + "  ", .warning)
      line.add(row.text)
      if let item = row.item { line.add("; in an item of \(item)", .dim) }
      return line
    }
    return section("BLOCKED THREADS", rows, frame.blockedThreads, limit)
  }

  private func eventLines(limit: Int) -> [ScreenLine] {
    let rows = frame.events.map { event in
      let rate = Self.number(frame.interval.rate(event.count)) + "/s"
      var line = ScreenLine("  " + fit(event.name, max(columns - 36, 20)))
      line.add(fit(rate, 9, right: true), event.count == 0 ? .dim : .plain)
      line.add("  " + event.detail, .dim)
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
    func row(_ title: String, _ text: String, _ style: ScreenLine.Style = .plain) -> ScreenLine {
      var line = ScreenLine(fit(title, 7), .heading)
      line.add(text, style)
      return line
    }
    func times(_ title: String, _ histogram: DurationHistogram) -> ScreenLine {
      guard histogram.count > 0 else { return row(title, "-", .dim) }
      return row(
        title,
        "median " + fit(time(histogram.median), 9) + "p99 " + fit(time(histogram.percentile(0.99)), 9)
          + "longest "
          + fit(time(histogram.longest), 9) + "mean " + time(histogram.mean))
    }
    var lines = [row("QUEUE", queue.name, .bold)]
    lines.append(
      row("", (queue.properties.isEmpty ? [queue.kind] : queue.properties).joined(separator: ", "), .dim))
    let depth = queue.depth.map { count($0, "item") + " waiting" } ?? "depth unknown"
    lines.append(
      row(
        "STATE", depth + (queue.state.isEmpty ? "" : ", " + queue.state), queue.isAlarming ? .warning : .plain
      ))
    lines.append(
      row(
        "RATE",
        "\(Self.number(frame.interval.rate(activity.started)))/s started, "
          + "\(Self.number(frame.interval.rate(activity.submitted)))/s submitted, busy \(share(activity.busy))"
      ))
    lines.append(row("", sparkline(frame.history[id] ?? []), .good))
    lines += [times("WAIT", activity.wait), times("RUN", activity.run)]
    if activity.syncWait.count > 0 { lines.append(times("SYNC", activity.syncWait)) }
    lines += [ScreenLine()] + bars(activity)
    let functions = activity.functions.sorted { ($0.value.sum, $1.key) > ($1.value.sum, $0.key) }
    if !functions.isEmpty {
      var title = ScreenLine(fit("FUNCTION", max(columns - 34, 12)), .bold)
      title.add(
        fit("RATE", 8, right: true) + fit("MEAN", 9, right: true) + fit("LONGEST", 9, right: true), .bold)
      title.add(fit("BUSY", 8, right: true), .bold)
      lines += [ScreenLine(), title]
      for (code, runs) in functions.prefix(20) {
        var line = ScreenLine(fit(function(code), max(columns - 35, 11)) + " ")
        line.add(fit(Self.number(frame.interval.rate(runs.count)) + "/s", 8, right: true))
        line.add(fit(time(runs.mean), 9, right: true) + fit(time(runs.longest), 9, right: true))
        line.add(fit(share(runs.sum), 8, right: true))
        lines.append(line)
      }
    }
    return lines
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
    let room = max((columns - 10 - 2 * 10) / 2, 4)
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
    ]
    func row(_ title: String, _ text: String) -> ScreenLine {
      var line = ScreenLine("  " + fit(title, 16), .bold)
      line.add(text)
      return line
    }
    return [ScreenLine("KEYS", .heading)] + keys.map(row) + [ScreenLine("COLUMNS", .heading)] + terms.map(row)
  }
}
