/// The report for people.
struct Report {
  let results: [RowResult]
  let summary: Summary
  let limits: Limits
  let options: Options
  /// Names of the rivals that took part.
  let rivals: [String]
  /// What the first table is headed with.
  var heading = "speed"

  var text: String {
    var parts: [String] = []
    for (section, title) in [(.speed, heading), (.memory, "memory"), (.behaviour, "behaviour")]
      as [(RowResult.Section, String)]
    {
      let rows = results.filter { $0.section == section }
      if !rows.isEmpty { parts.append(comparison(rows, title)) }
      if section == .speed, summary.smallest != nil { parts.append(overall) }
    }
    if !rivals.isEmpty { parts.append(rivalTable) }
    if !summary.failures.isEmpty {
      parts.append("FAILED:\n" + summary.failures.map { "  " + $0 }.joined(separator: "\n"))
    }
    if options.quick { parts.append("A quick run: too short to judge by.") }
    return parts.joined(separator: "\n\n")
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
            result.failures.isEmpty ? verdict(result.holds) : "FAILED",
          ]
        })
  }

  private var overall: String {
    var lines: [[String]] = []
    if let smallest = summary.smallest, let ratio = smallest.ratio {
      lines.append(["smallest ratio", fixed(ratio, 2), smallest.row.name])
    }
    if let mean = summary.geometricMean {
      let judged =
        summary.geometricMeanHolds == nil
        ? "of some rows only" : ">= \(short(limits.geometricMean)) \(verdict(summary.geometricMeanHolds))"
      lines.append(["geometric mean", fixed(mean, 2), judged])
    }
    return table(lines)
  }

  /// Where we stand: a rival's time divided by ours, so above one we are ahead.
  private var rivalTable: String {
    let shared = results.filter { result in rivals.contains { result.least[$0] != nil } }
    let head =
      ["rivals", "incumbent", "Concourse"] + rivals.flatMap { [$0, "\($0) / Concourse"] }
      + ["expected of C", ""]
    return table(
      [head]
        + shared.map { result in
          [
            result.row.name, cell(result.incumbent, result.row.unit),
            cell(result.concourse, result.row.unit),
          ]
            + rivals.flatMap { rival -> [String] in
              [
                cell(result.least[rival]?.value, result.row.unit),
                result.ratio(to: rival).map { fixed($0, 2) } ?? "-",
              ]
            }
            + [result.limitToC.map { ">= \(short($0))" } ?? "", verdict(result.holdsToC)]
        })
  }

  private func cell(_ value: Double?, _ unit: String) -> String {
    value.map { amount($0, unit) } ?? "-"
  }

  private func verdict(_ holds: Bool?) -> String {
    switch holds {
    case true?: "ok"
    case false?: "MISSED"
    case nil: ""
    }
  }

  private func expectation(of result: RowResult) -> String {
    switch result.limit {
    case .speed(let least), .apart(let least), .geometricMean(let least): ">= \(short(least))"
    case .partOfIncumbent(let most): "<= \(short(most)) of it"
    case .most(let most): "<= \(short(most)) \(result.row.unit)"
    case .report: ""
    }
  }
}
