import Glibc

/// One row on every contestant that has it: the least value of all rounds for each.
struct RowResult {
  let row: Contestant.RowInfo
  let limit: Limit
  var least: [String: Reading] = [:]
  var failures: [String] = []

  var incumbent: Double? { least[Contestant.incumbentName]?.value }
  var concourse: Double? { least[Contestant.concourseName]?.value }

  /// Incumbent divided by Concourse: how many times better we are.
  var ratio: Double? {
    guard let incumbent, let concourse else { return nil }
    return incumbent / concourse
  }

  /// nil where there is nothing to judge.
  var holds: Bool? {
    guard failures.isEmpty else { return false }
    guard let ratio, let concourse else { return nil }
    return switch limit {
    case .speed(let least): ratio >= least
    case .bytesOfIncumbent(let most): 1 / ratio <= most
    case .bytes(let most): concourse <= most
    case .geometricMean(let least): ratio >= least
    }
  }
}

extension Contestant {
  static let incumbentName = "incumbent"
  static let concourseName = "concourse"
}

struct Comparison {
  let contestants: [Contestant]
  let limits: Limits
  let options: Options

  func run() throws(Failure) -> [RowResult] {
    var rowsOf: [String: Set<String>] = [:]
    var wanted: [Contestant.RowInfo] = []
    for contestant in contestants {
      let rows = try contestant.rows()
      rowsOf[contestant.name] = Set(rows.map(\.name))
      // The first contestant is a runtime; the rivals have some of its rows and no others.
      if wanted.isEmpty { wanted = rows.filter { options.wants(row: $0.name) } }
    }
    guard !wanted.isEmpty else { throw Failure("no row has such a name") }

    var results: [RowResult] = []
    for row in wanted {
      guard let limit = limits.rows[row.name] else { throw Failure("limits.tsv: no row \(row.name)") }
      let having = contestants.filter { rowsOf[$0.name]?.contains(row.name) == true }
      results.append(measure(row, limit, on: having))
    }
    return results
  }

  /// Takes the contestants in turn, round by round, so that what else the machine does, and how fast
  /// it runs, meets all of them.
  private func measure(_ row: Contestant.RowInfo, _ limit: Limit, on having: [Contestant]) -> RowResult {
    var result = RowResult(row: row, limit: limit)
    // Seconds, not nanoseconds: the row is long, and its noise small beside it.
    let rounds = row.unit == "s" ? min(options.rounds, 2) : options.rounds
    var remaining = having
    for round in 1...rounds {
      for contestant in remaining {
        progress("\(row.name): round \(round) of \(rounds), \(contestant.name)")
        do throws(Failure) {
          let reading = try contestant.measure(row.name, quick: options.quick)
          if let first = result.least.first?.value,
            first.operations != reading.operations || first.check != reading.check
          {
            throw Failure("\(contestant.name) did other work on \(row.name): \(reading), not \(first)")
          }
          if reading.value < result.least[contestant.name]?.value ?? .infinity {
            result.least[contestant.name] = reading
          }
        } catch {
          result.failures.append(error.message)
          remaining.removeAll { $0.name == contestant.name }
        }
      }
    }
    progress(nil)
    return result
  }
}

/// One line on a terminal that replaces the one before; nothing elsewhere.
private func progress(_ line: String?) {
  guard isatty(STDERR_FILENO) == 1 else { return }
  writeToStandardError("\r\u{1B}[K" + (line ?? ""))
}

func writeToStandardError(_ text: String) {
  var text = text
  // SAFETY: the bytes are used within the closure only.
  text.withUTF8 { bytes in _ = write(STDERR_FILENO, bytes.baseAddress, bytes.count) }
}
