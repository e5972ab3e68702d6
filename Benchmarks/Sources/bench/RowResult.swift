/// One row on every contestant that has it: the least value of all rounds for each.
struct RowResult {
  let row: Contestant.RowInfo
  let limit: Limit
  /// What C's value divided by ours must come to at least; nil where nothing is asked.
  let limitToC: Double?
  var least: [String: Reading] = [:]
  var failures: [String] = []

  init(row: Contestant.RowInfo, limit: Limit, limitToC: Double?) {
    self.row = row
    self.limit = limit
    self.limitToC = limitToC
  }

  var incumbent: Double? { least[Contestant.incumbentName]?.value }
  var concourse: Double? { least[Contestant.concourseName]?.value }

  /// Which of the report's tables it stands in.
  enum Section { case speed, memory, behaviour }

  var section: Section {
    if row.unit == "bytes" { return .memory }
    return limit.isSpeed ? .speed : .behaviour
  }

  /// Incumbent divided by Concourse: how many times better we are. nil where we need nothing at all.
  var ratio: Double? {
    guard let incumbent, let concourse, concourse > 0 else { return nil }
    return incumbent / concourse
  }

  /// The same for a rival.
  func ratio(to rival: String) -> Double? {
    guard let value = least[rival]?.value, let concourse, concourse > 0 else { return nil }
    return value / concourse
  }

  /// nil where there is nothing to judge.
  var holds: Bool? {
    guard failures.isEmpty else { return false }
    guard let incumbent, let concourse else { return nil }
    return switch limit {
    case .speed(let least), .apart(let least), .geometricMean(let least): incumbent >= least * concourse
    case .partOfIncumbent(let most): concourse <= most * incumbent
    case .most(let most): concourse <= most
    case .report: nil
    }
  }

  /// nil where there is nothing to judge.
  var holdsToC: Bool? {
    guard let limitToC, let ratio = ratio(to: Contestant.plainCName) else { return nil }
    return ratio >= limitToC
  }

  mutating func take(_ reading: Reading, of contestant: Contestant) throws(Failure) {
    if let first = least.first?.value,
      first.operations != reading.operations || first.check != reading.check
    {
      throw Failure("\(contestant.name) did other work on \(row.name): \(reading), not \(first)")
    }
    if reading.value < least[contestant.name]?.value ?? .infinity { least[contestant.name] = reading }
  }
}
