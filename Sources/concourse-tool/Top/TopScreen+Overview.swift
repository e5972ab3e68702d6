/// The view of all queues: the table, the blocked threads, the timers and sources.
extension TopScreen {
  private struct Column {
    var title: String
    var width: Int
    /// On a narrow screen the highest goes first.
    var rank: Int
    var order: TopState.Order?
    var text: (TopFrame.Queue) -> String
  }

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

  func overview() -> [ScreenLine] {
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
    // A text has no key that leads to them.
    let hasTasks = frame.tasks.map { !$0.isEmpty || $0.problem != nil && $0.hasRuntime } ?? false
    let tasks = height == nil && hasTasks ? [ScreenLine()] + tasks() : []
    return head + table(rows, shown) + blocked + events + tasks
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
}
