import Glibc

/// What is expected of a row; limits.tsv describes the kinds.
enum Limit: Equatable {
  case speed(atLeast: Double)
  case apart(atLeast: Double)
  case partOfIncumbent(atMost: Double)
  case most(Double)
  case report

  var isSpeed: Bool {
    switch self {
    case .speed, .apart: true
    case .partOfIncumbent, .most, .report: false
    }
  }
}

struct Limits {
  private(set) var rows: [String: Limit] = [:]
  /// The least that plain C's value divided by ours may be.
  private(set) var toC: [String: Double] = [:]
  private(set) var geometricMean: Double

  /// - Parameter name: the file, for messages.
  init(_ text: [UInt8], name: String) throws(Failure) {
    var mean: Double?
    for line in String(decoding: text, as: UTF8.self).split(separator: "\n") where !line.hasPrefix("#") {
      let fields = line.split(separator: "\t").map(String.init)
      if fields.count == 2, fields[1] == "report" {
        rows[fields[0]] = .report
        continue
      }
      guard fields.count == 3, let number = Double(fields[2]) else {
        throw Failure("\(name): cannot read: \(line)")
      }
      switch fields[1] {
      case "speed": rows[fields[0]] = .speed(atLeast: number)
      case "apart": rows[fields[0]] = .apart(atLeast: number)
      case "incumbent": rows[fields[0]] = .partOfIncumbent(atMost: number)
      case "most": rows[fields[0]] = .most(number)
      case "C": toC[fields[0]] = number
      case "mean": mean = number
      default: throw Failure("\(name): unknown kind: \(line)")
      }
    }
    guard let mean else { throw Failure("\(name): no limit for the geometric mean") }
    geometricMean = mean
  }
}

/// One row on every contestant that has it: the least value of all rounds for each.
struct RowResult {
  let row: Contestant.RowInfo
  let limit: Limit
  /// The least that C's value divided by ours may be; nil if there is no limit.
  let limitToC: Double?
  var least: [String: Reading] = [:]
  /// The values of all rounds of each contestant.
  private(set) var values: [String: [Double]] = [:]
  var failures: [String] = []

  init(row: Contestant.RowInfo, limit: Limit, limitToC: Double?) {
    self.row = row
    self.limit = limit
    self.limitToC = limitToC
  }

  var incumbent: Double? { least[Contestant.incumbentName]?.value }
  var concourse: Double? { least[Contestant.concourseName]?.value }

  /// The table of the report that shows it.
  enum Section { case speed, memory, behaviour }

  var section: Section {
    if row.unit == "bytes" { return .memory }
    return limit.isSpeed ? .speed : .behaviour
  }

  /// Incumbent divided by Concourse; nil if Concourse's value is 0.
  var ratio: Double? { ratio(to: Contestant.incumbentName) }

  /// The same for a rival.
  func ratio(to rival: String) -> Double? {
    guard let value = least[rival]?.value, let concourse, concourse > 0 else { return nil }
    return value / concourse
  }

  /// nil if there is nothing to judge.
  var holds: Bool? {
    guard failures.isEmpty else { return false }
    guard let incumbent, let concourse else { return nil }
    return switch limit {
    case .speed(let least), .apart(let least): incumbent >= least * concourse
    case .partOfIncumbent(let most): concourse <= most * incumbent
    case .most(let most): concourse <= most
    case .report: nil
    }
  }

  /// nil if there is nothing to judge.
  var holdsToC: Bool? {
    guard let limitToC, let ratio = ratio(to: Contestant.plainCName) else { return nil }
    return ratio >= limitToC
  }

  /// The values of a contestant between which there is a gap: nothing between the greatest of the lower ones and 1.5 times
  /// as much, and at least two rounds on either side. nil if there is no gap, or if there were fewer than four rounds.
  func modes(of contestant: String) -> (lower: [Double], upper: [Double])? {
    let sorted = (values[contestant] ?? []).sorted()
    guard sorted.count >= 4 else { return nil }
    for split in 2...(sorted.count - 2) where sorted[split] >= 1.5 * sorted[split - 1] {
      return (Array(sorted[..<split]), Array(sorted[split...]))
    }
    return nil
  }

  mutating func take(_ reading: Reading, of contestant: Contestant) throws(Failure) {
    if let first = least.first?.value,
      first.operations != reading.operations || first.check != reading.check
    {
      throw Failure("\(contestant.name) did other work on \(row.name): \(reading), not \(first)")
    }
    values[contestant.name, default: []].append(reading.value)
    if reading.value < least[contestant.name]?.value ?? .infinity { least[contestant.name] = reading }
  }
}

/// The rows of a suite taken together.
struct Summary {
  let smallest: RowResult?
  let geometricMean: Double?
  let geometricMeanLimit: Double
  let geometricMeanHolds: Bool?
  let failures: [String]
  /// Names of rows beyond their limit, and "geometric-mean".
  let missed: [String]

  /// - Parameter complete: all rows were measured; the mean of a part of them is not judged.
  init(_ results: [RowResult], _ limits: Limits, complete: Bool) {
    smallest = results.filter { $0.section == .speed && $0.ratio != nil }
      .min { ($0.ratio ?? 0) < ($1.ratio ?? 0) }
    let ratios = results.compactMap { result in
      if case .speed = result.limit { result.ratio } else { nil }
    }
    geometricMean = ratios.isEmpty ? nil : exp(ratios.reduce(0) { $0 + log($1) } / Double(ratios.count))
    geometricMeanLimit = limits.geometricMean
    geometricMeanHolds = complete ? geometricMean.map { $0 >= limits.geometricMean } : nil
    failures = results.flatMap(\.failures)
    missed =
      results.filter { $0.holds == false }.map(\.row.name)
      + results.filter { $0.holdsToC == false }.map { $0.row.name + " (against C)" }
      + (geometricMeanHolds == false ? ["geometric-mean"] : [])
  }
}
