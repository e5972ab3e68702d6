/// Throughput by processors, in the terminal and as a page with a chart.
struct ScalingReport {
  let result: Scaling.Result
  let scaling: Scaling

  /// For the terminal.
  var text: String {
    let head = ["million/s", "processors"] + result.contestants.map(name) + ["ratio"]
    var lines = [head]
    for row in result.rows {
      for (index, count) in result.counts.enumerated() {
        lines.append([index == 0 ? row.name : "", String(count)] + cells(row, index))
      }
    }
    let ending =
      result.failures.isEmpty
      ? "" : "\n\nFAILED:\n" + result.failures.map { "  " + $0 }.joined(separator: "\n")
    return [table(lines), notes].joined(separator: "\n\n") + ending
  }

  /// `SCALING.md`.
  var page: String {
    let head = ["row", "processors"] + result.contestants.map(name) + ["ratio"]
    var lines = [head, head.map { _ in "---" }]
    for row in result.rows {
      for (index, count) in result.counts.enumerated() {
        lines.append([index == 0 ? "`\(row.name)`" : "", String(count)] + cells(row, index))
      }
    }
    let questions = result.rows.map { "- `\($0.name)`: \($0.question)." }
    return """
      # Throughput by processors

      Written by `Benchmarks/run --scaling --results`:
      \(conditions(scaling.options, "the best of \(scaling.rounds) rounds of \(scaling.milliseconds) ms"))

      ![Throughput of each row by the number of processors](scaling.svg)

      \(lines.map { "| " + $0.joined(separator: " | ") + " |" }.joined(separator: "\n"))

      \(notes)

      \(questions.joined(separator: "\n"))

      """
  }

  private var notes: String {
    """
    Million operations a second; more is better. Ratio: Concourse divided by the toolchain. "–": no counterpart.
    Processors in this order, which fills one cache before the next: \(list(scaling.processors.order)).
    """
  }

  private func cells(_ row: Scaling.Row, _ index: Int) -> [String] {
    let values = row.best[index]
    let ratio = values[Contestant.concourseName].flatMap { ours in
      values[Contestant.incumbentName].map { fixed(ours / $0, 2) }
    }
    return result.contestants.map { name in
      values[name].map { short($0 / 1e6) } ?? (row.having.contains(name) ? "failed" : "–")
    } + [ratio ?? "–"]
  }

  private func name(_ contestant: String) -> String {
    switch contestant {
    case Contestant.incumbentName: "toolchain"
    case Contestant.concourseName: "Concourse"
    default: contestant
    }
  }

  /// Ranges where numbers follow each other.
  private func list(_ numbers: [Int32]) -> String {
    var ranges: [ClosedRange<Int32>] = []
    for number in numbers {
      if let last = ranges.last, last.upperBound + 1 == number {
        ranges[ranges.count - 1] = last.lowerBound...number
      } else {
        ranges.append(number...number)
      }
    }
    return ranges.map { $0.count == 1 ? "\($0.lowerBound)" : "\($0.lowerBound)–\($0.upperBound)" }
      .joined(separator: ", ")
  }

  /// Writes the page and its chart.
  func write(into checkout: String) throws(Failure) {
    try writeText(page, to: "\(checkout)/Benchmarks/SCALING.md")
    let panels = result.rows.map { row in
      CurveChart.Panel(
        title: row.name, unit: "million/s",
        curves: result.contestants.filter(row.having.contains).map { contestant in
          (name(contestant), row.best.map { $0[contestant].map { $0 / 1e6 } })
        })
    }
    let chart = CurveChart(
      steps: result.counts.map(String.init), names: result.contestants.map(name), panels: panels)
    try writeText(chart.text, to: "\(checkout)/Benchmarks/scaling.svg")
  }
}
