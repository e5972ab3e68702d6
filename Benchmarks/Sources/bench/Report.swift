import Glibc

/// The report for people.
struct Report {
  let parts: [Suite.Result]
  let startUp: [StartUp.Result]
  let options: Options

  var text: String {
    var texts: [String] = []
    for part in parts {
      for (section, title) in [(.speed, part.heading), (.memory, "memory"), (.behaviour, "behaviour")]
        as [(RowResult.Section, String)]
      {
        let rows = part.rows.filter { $0.section == section }
        if !rows.isEmpty { texts.append(comparison(rows, title)) }
        if section == .speed, part.summary.smallest != nil { texts.append(overall(part.summary)) }
      }
      if !part.rivals.isEmpty { texts.append(rivalTable(part)) }
    }
    let modes = parts.flatMap(\.rows).flatMap(twoModes)
    if !modes.isEmpty { texts.append(table([["two modes", "", "rounds", "", "rounds"]] + modes)) }
    if !startUp.isEmpty {
      let head = ["start-up", "incumbent", "Concourse", "difference", "expected", ""]
      texts.append(table([head] + startUp.map(\.cells)))
    }
    let failures = parts.flatMap(\.summary.failures)
    if options.quick { texts.append("A quick run: too short to judge by.") }
    if failures.isEmpty {
      let missed =
        parts.flatMap { part in part.summary.missed.map { "\(part.heading) \($0)" } }
        + startUp.filter { !$0.holds }.map { "start-up \($0.program)" }
      if options.only == nil { texts.append(verdict(missed: missed)) }
    } else {
      texts.append("FAILED:\n" + failures.map { "  " + $0 }.joined(separator: "\n"))
    }
    return texts.joined(separator: "\n\n")
  }

  private func comparison(_ rows: [RowResult], _ title: String) -> String {
    if let only = options.only {
      return table(
        [[title, only.rawValue]]
          + rows.map { [$0.row.name, cell($0.least[only.rawValue]?.value, $0.row.unit)] })
    }
    return table(
      [[title, "incumbent", "Concourse", "ratio", "expected", ""]]
        + rows.map { result in
          [
            result.row.name, cell(result.incumbent, result.row.unit),
            cell(result.concourse, result.row.unit),
            result.ratio.map { fixed($0, 2) } ?? "-", expectation(of: result),
            result.failures.isEmpty ? mark(result.holds) : "FAILED",
          ]
        })
  }

  /// A line for each runtime on which the rounds of a row fall into two groups.
  private func twoModes(_ result: RowResult) -> [[String]] {
    [Contestant.incumbentName, Contestant.concourseName].compactMap { name in
      result.modes(of: name).map { lower, upper in
        ["\(result.row.name), \(name)"]
          + [lower, upper].flatMap { values in
            [amount(values[values.count / 2], result.row.unit), String(values.count)]
          }
      }
    }
  }

  private func overall(_ summary: Summary) -> String {
    var lines: [[String]] = []
    if let smallest = summary.smallest, let ratio = smallest.ratio {
      lines.append(["smallest ratio", fixed(ratio, 2), smallest.row.name])
    }
    if let mean = summary.geometricMean {
      let judged =
        summary.geometricMeanHolds == nil
        ? "of some rows only" : ">= \(short(summary.geometricMeanLimit)) \(mark(summary.geometricMeanHolds))"
      lines.append(["geometric mean", fixed(mean, 2), judged])
    }
    return table(lines)
  }

  /// A rival's time divided by ours: above one, we need less.
  private func rivalTable(_ part: Suite.Result) -> String {
    let shared = part.rows.filter { result in part.rivals.contains { result.least[$0] != nil } }
    let ofC = shared.contains { $0.limitToC != nil }
    let head =
      ["rivals", "incumbent", "Concourse"] + part.rivals.flatMap { [$0, "\($0) / Concourse"] }
      + (ofC ? ["expected of C", ""] : [])
    return table(
      [head]
        + shared.map { result in
          [
            result.row.name, cell(result.incumbent, result.row.unit),
            cell(result.concourse, result.row.unit),
          ]
            + part.rivals.flatMap { rival -> [String] in
              [
                cell(result.least[rival]?.value, result.row.unit),
                result.ratio(to: rival).map { fixed($0, 2) } ?? "-",
              ]
            }
            + (ofC ? [result.limitToC.map { ">= \(short($0))" } ?? "", mark(result.holdsToC)] : [])
        })
  }

  private func cell(_ value: Double?, _ unit: String) -> String {
    value.map { amount($0, unit) } ?? "-"
  }

  private func mark(_ holds: Bool?) -> String {
    switch holds {
    case true?: "ok"
    case false?: "MISSED"
    case nil: ""
    }
  }

  private func expectation(of result: RowResult) -> String {
    switch result.limit {
    case .speed(let least), .apart(let least): ">= \(short(least))"
    case .partOfIncumbent(let most): "<= \(short(most)) of it"
    case .most(let most): "<= \(short(most)) \(result.row.unit)"
    case .report: ""
    }
  }
}

/// The last line of a report.
func verdict(missed: [String]) -> String {
  missed.isEmpty ? "PASS" : "MISS: " + missed.joined(separator: ", ")
}

// MARK: Text

/// `value` with `digits` digits after the point, rounded to nearest.
func fixed(_ value: Double, _ digits: Int) -> String {
  var scale = 1
  for _ in 0..<digits { scale *= 10 }
  let scaled = Int((value * Double(scale)).rounded())
  guard digits > 0 else { return String(scaled) }
  let fraction = String(scaled % scale)
  let zeros = String(repeating: "0", count: digits - fraction.count)
  return "\(scaled / scale).\(zeros)\(fraction)"
}

/// Three significant digits.
func short(_ value: Double) -> String {
  if value == 0 { return "0" }
  return fixed(value, value >= 100 ? 0 : value >= 10 ? 1 : value >= 1 ? 2 : 3)
}

/// A value of a row with its unit.
func amount(_ value: Double, _ unit: String) -> String { "\(short(value)) \(unit)" }

/// Rows of cells in columns: the first column aligned to the left, the others to the right.
func table(_ lines: [[String]]) -> String {
  let columns = lines.map(\.count).max() ?? 0
  let widths = (0..<columns).map { column in
    lines.map { $0.count > column ? $0[column].count : 0 }.max() ?? 0
  }
  return lines.map { line in
    var text = ""
    for (column, cell) in line.enumerated() {
      let padding = String(repeating: " ", count: widths[column] - cell.count)
      text += column == 0 ? cell + padding : "  " + padding + cell
    }
    return text
  }.joined(separator: "\n")
}
