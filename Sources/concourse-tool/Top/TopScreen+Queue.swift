import ConcourseRecording

/// The view of one queue.
extension TopScreen {
  private static let limits: [UInt64] = [
    1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000,
  ]
  private static let limitNames = [
    "< 1 us", "< 10 us", "< 100 us", "< 1 ms", "< 10 ms", "< 100 ms", "< 1 s", "longer",
  ]

  func detail(of id: UInt64) -> [ScreenLine] {
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
}
