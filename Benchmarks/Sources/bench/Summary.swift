import Glibc

/// What the rows say together.
struct Summary {
  let smallest: RowResult?
  let geometricMean: Double?
  let geometricMeanHolds: Bool?
  let failures: [String]
  /// Names of rows beyond their limit, and "geometric-mean".
  let missed: [String]

  /// - Parameter complete: all rows were measured; the mean of some of them is not judged.
  init(_ results: [RowResult], _ limits: Limits, complete: Bool) {
    smallest = results.filter { $0.section == .speed && $0.ratio != nil }
      .min { ($0.ratio ?? 0) < ($1.ratio ?? 0) }
    let speed = results.filter { result in
      if case .speed = result.limit { result.ratio != nil } else { false }
    }
    if speed.isEmpty {
      geometricMean = nil
    } else {
      geometricMean = exp(speed.reduce(0) { $0 + log($1.ratio ?? 1) } / Double(speed.count))
    }
    geometricMeanHolds = complete ? geometricMean.map { $0 >= limits.geometricMean } : nil
    failures = results.flatMap(\.failures)
    missed =
      results.filter { $0.holds == false }.map(\.row.name)
      + results.filter { $0.holdsToC == false }.map { $0.row.name + " (against C)" }
      + (geometricMeanHolds == false ? ["geometric-mean"] : [])
  }
}
