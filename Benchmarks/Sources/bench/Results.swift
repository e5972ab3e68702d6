import Glibc

/// The published results of one run: `Benchmarks/RESULTS.md`, the chart of ten rows beside it, and the table of the same
/// rows in `README.md`. All three are written from the same numbers or not at all.
struct Results {
  /// The ten rows of README and the chart, in words.
  private static let chosen = [
    ("serial-async-one-producer", "`async` onto a serial queue"),
    ("sync-uncontended", "`sync` on an idle queue"),
    ("barrier-sync-uncontended", "barrier `sync` on an idle queue"),
    ("hop-between-serial-queues", "a hop between two queues"),
    ("global-async-group-wait", "fan-out with a group"),
    ("round-trip-without-pause", "a round trip to a queue"),
    ("async-after-many-timers", "`asyncAfter`, 200,000 at once"),
    ("pipe-event-round-trip", "a byte through a pipe to a handler"),
    ("echo-64-connections", "a round trip of 64 TCP connections"),
    ("read-cached-file", "reading a cached file of 1 GiB"),
  ]
  private static let recordingHeading = "## Recording"
  private static let (beginning, end) = ("<!-- results -->", "<!-- end of results -->")

  let parts: [Suite.Result]
  let startUp: [StartUp.Result]
  let options: Options

  /// Writes the three files into the checkout at `root`.
  func write(into root: String) throws(Failure) {
    let readme = "\(root)/README.md"
    let old = try readText(readme)
    let lines = old.split(separator: "\n", omittingEmptySubsequences: false)
    guard let begin = lines.firstIndex(where: { $0 == Self.beginning }),
      let end = lines.firstIndex(where: { $0 == Self.end }), begin < end
    else { throw Failure("\(readme) has no \(Self.beginning) before \(Self.end)") }
    let ten = try chosenRows()
    let new = lines[...begin] + [section(ten)[...]] + lines[end...]
    try writeText(page, to: "\(root)/Benchmarks/RESULTS.md")
    try writeText(Chart(bars: ten.map { ($0.words, $0.row) }).text, to: "\(root)/Benchmarks/results.svg")
    try writeText(new.joined(separator: "\n"), to: readme)
  }

  /// Replaces the last part of `Benchmarks/RESULTS.md`, which has conditions of its own.
  func replaceRecording(_ results: [RecordingCost.Result], in root: String) throws(Failure) {
    let path = "\(root)/Benchmarks/RESULTS.md"
    let lines = try readText(path).split(separator: "\n", omittingEmptySubsequences: false)
    var kept = lines.prefix { $0 != Self.recordingHeading }
    while kept.last?.isEmpty == true { kept.removeLast() }
    let head = RecordingCost.Result.head
    let rows = results.map { cells(["`\($0.row)`"] + $0.cells[1...]) }
    let table = ([cells(["row"] + head[1...]), cells(head.map { _ in "---" })] + rows).joined(separator: "\n")
    try writeText(
      """
      \(kept.joined(separator: "\n"))

      \(Self.recordingHeading)

      Written by `Benchmarks/run --recording --results`:
      \(conditions(options, "medians of \(RecordingCost.rounds(options)) rounds"))
      Finished C programs on Concourse's library, without and with the flight recorder.

      \(table)

      """, to: path)
  }

  // MARK: README

  private func chosenRows() throws(Failure) -> [(row: RowResult, words: String)] {
    let rows = parts.flatMap(\.rows)
    return try Self.chosen.map { name, words throws(Failure) in
      guard let row = rows.first(where: { $0.row.name == name && $0.ratio != nil }) else {
        throw Failure("there is no row \(name) for the chart")
      }
      return (row, words)
    }
  }

  private func section(_ ten: [(row: RowResult, words: String)]) -> String {
    let means = parts.compactMap { part in
      part.summary.geometricMean.map { "\(fixed($0, 2)) (\(part.heading))" }
    }
    return """

      ![Time of Concourse and of the toolchain's Dispatch for ten pieces of work](Benchmarks/results.svg)

      | | toolchain | Concourse | ratio |
      |---|---|---|---|
      \(ten.map { cells([$0.words] + comparison($0.row)) }.joined(separator: "\n"))

      \(conditionsOfRows)
      Geometric means of the ratios: \(means.joined(separator: ", ")). All rows:
      [Benchmarks/RESULTS.md](Benchmarks/RESULTS.md).

      """
  }

  // MARK: RESULTS.md

  private var page: String {
    """
    # Results

    Written by `Benchmarks/run --results` from one run:
    \(conditionsOfRows)

    *Ratio* is the toolchain's value divided by that of Concourse: above 1, Concourse needs less.
    [README.md](README.md) says what each row does, and how it is measured.

    \((parts.map(text) + [startUpText]).joined(separator: "\n\n"))

    """
  }

  private func text(_ part: Suite.Result) -> String {
    let head = ["row", "toolchain", "Concourse", "ratio"] + part.rivals.map { "\($0) / Concourse" }
    let rows = part.rows.map { result in
      cells(["`\(result.row.name)`"] + comparison(result) + part.rivals.map { ratio(result.ratio(to: $0)) })
    }
    let mean = part.summary.geometricMean.map { "\nGeometric mean of the rows about speed: \(fixed($0, 2))." }
    return (["## \(part.heading)\n", cells(head), cells(head.map { _ in "---" })] + rows + [mean ?? ""])
      .joined(separator: "\n")
  }

  private var startUpText: String {
    let head = [
      "## Start-up\n\nMedian time from the start of a program to its end.\n",
      cells(["program", "toolchain", "Concourse", "difference"]), cells(["---", "---", "---", "---"]),
    ]
    return (head + startUp.map { cells(["`\($0.program)`"] + $0.cells[1...3]) }).joined(separator: "\n")
  }

  private func comparison(_ result: RowResult) -> [String] {
    let unit = result.row.unit
    return [
      result.incumbent.map { amount($0, unit) } ?? "–", result.concourse.map { amount($0, unit) } ?? "–",
      ratio(result.ratio),
    ]
  }

  private func ratio(_ value: Double?) -> String { value.map { fixed($0, 2) } ?? "–" }

  private func cells(_ texts: [String]) -> String { "| " + texts.joined(separator: " | ") + " |" }

  private var conditionsOfRows: String {
    conditions(options, options.rounds == 1 ? "one round" : "the least of \(options.rounds) rounds")
  }
}

/// When, where and how it was measured.
///
/// - Parameter rounds: which of the rounds count.
func conditions(_ options: Options, _ rounds: String) -> String {
  var time = time(nil)
  var parts = tm()
  gmtime_r(&time, &parts)
  var date = [CChar](repeating: 0, count: 16)
  strftime(&date, date.count, "%Y-%m-%d", &parts)
  let day = String(decoding: date.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  let model = (try? readText("/proc/cpuinfo"))?.split(separator: "\n").first { $0.hasPrefix("model name") }?
    .split(separator: ":").last.map { $0.drop { $0 == " " } }
  let quick = options.quick ? "**A quick run: too short to judge by.** " : ""
  return """
    \(quick)\(day), \(sysconf(Int32(_SC_NPROCESSORS_ONLN))) processors (\(model ?? "unknown")),
    \(options.about); \(rounds) of each in turn.
    """
}

/// Rows as pairs of bars: the toolchain's time at full length, that of Concourse in proportion. The colours are readable
/// on light and dark pages.
private struct Chart {
  let bars: [(words: String, row: RowResult)]

  private static let (left, full, step, height) = (270.0, 360.0, 34.0, 11.0)

  var text: String {
    let bottom = Double(bars.count) * Self.step + 34
    // The bar of a slower row is longer than the toolchain's; all bars have one scale.
    let longest = bars.map { 1 / ($0.row.ratio ?? 1) }.reduce(1, max)
    return """
      <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 \(short(bottom))" font-family="sans-serif" font-size="13">
      <style>
        text { fill: #57606a } .theirs { fill: #8c959f } .ours { fill: #e8590c }
        @media (prefers-color-scheme: dark) { text { fill: #b1bac4 } .theirs { fill: #6e7681 } .ours { fill: #ff8a3d } }
      </style>
      \(bars.enumerated().map { pair($0.offset, $0.element, scale: Self.full / longest) }.joined(separator: "\n"))
      <rect class="theirs" x="270" y="\(short(bottom - 20))" width="11" height="11"/>
      <text x="287" y="\(short(bottom - 10))">the toolchain's Dispatch</text>
      <rect class="ours" x="450" y="\(short(bottom - 20))" width="11" height="11"/>
      <text x="467" y="\(short(bottom - 10))">Concourse: less is better</text>
      </svg>

      """
  }

  private func pair(_ index: Int, _ bar: (words: String, row: RowResult), scale: Double) -> String {
    let top = Double(index) * Self.step + 6
    let ratio = bar.row.ratio ?? 1
    let words = bar.words.filter { $0 != "`" }
    let (theirs, ours) = (scale, max(scale / ratio, 1))
    return """
      <text x="\(short(Self.left - 10))" y="\(short(top + 16))" text-anchor="end">\(words)</text>
      <rect class="theirs" x="270" y="\(short(top))" width="\(short(theirs))" height="11"/>
      <rect class="ours" x="270" y="\(short(top + Self.height + 1))" width="\(short(ours))" height="11"/>
      <text x="\(short(Self.left + max(theirs, ours) + 8))" y="\(short(top + 16))">\(fixed(ratio, ratio < 10 ? 2 : 1))×</text>
      """
  }
}
