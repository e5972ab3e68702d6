/// The report for programs: the same numbers, unrounded.
struct JSONReport {
  let part: Suite.Result
  let options: Options

  var text: String {
    let (rows, summary) = (part.rows.map(row).joined(separator: ",\n    "), part.summary)
    return """
      {
        "rounds": \(options.rounds),
        "quick": \(options.quick),
        "rows": [
          \(rows)
        ],
        "smallestRatio": \(number(summary.smallest?.ratio)),
        "smallestRow": \(summary.smallest.map { quoted($0.row.name) } ?? "null"),
        "geometricMean": \(number(summary.geometricMean)),
        "geometricMeanExpected": \(summary.geometricMeanLimit),
        "missed": [\(summary.missed.map(quoted).joined(separator: ", "))],
        "failures": [\(summary.failures.map(quoted).joined(separator: ", "))]
      }
      """
  }

  private func row(_ result: RowResult) -> String {
    let values = result.least.sorted { $0.key < $1.key }
      .map { "\(quoted($0.key)): \($0.value.value)" }.joined(separator: ", ")
    let (kind, limit) = describe(result.limit)
    let fields = [
      "\"row\": \(quoted(result.row.name))",
      "\"question\": \(quoted(result.row.question))",
      "\"unit\": \(quoted(result.row.unit))",
      "\"operations\": \(result.least.first.map { String($0.value.operations) } ?? "null")",
      "\"values\": {\(values)}",
      "\"ratio\": \(number(result.ratio))",
      "\"kind\": \(quoted(kind))",
      "\"limit\": \(number(limit))",
      "\"holds\": \(result.holds.map { String($0) } ?? "null")",
      "\"ratioToC\": \(number(result.ratio(to: Contestant.plainCName)))",
      "\"limitToC\": \(number(result.limitToC))",
    ]
    return "{" + fields.joined(separator: ", ") + "}"
  }

  private func describe(_ limit: Limit) -> (kind: String, limit: Double?) {
    switch limit {
    case .speed(let least): ("speed", least)
    case .apart(let least): ("apart", least)
    case .partOfIncumbent(let most): ("incumbent", most)
    case .most(let most): ("most", most)
    case .report: ("report", nil)
    }
  }

  private func number(_ value: Double?) -> String { value.map { "\($0)" } ?? "null" }

  private func quoted(_ text: String) -> String {
    var quoted = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": quoted += "\\\""
      case "\\": quoted += "\\\\"
      case "\n": quoted += "\\n"
      case _ where scalar.value < 0x20: quoted += " "
      default: quoted.unicodeScalars.append(scalar)
      }
    }
    return quoted + "\""
  }
}
