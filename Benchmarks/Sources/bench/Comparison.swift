import Glibc

extension Contestant {
  static let incumbentName = "incumbent"
  static let concourseName = "concourse"
  static let plainCName = "C"
}

struct Comparison {
  let contestants: [Contestant]
  let limits: Limits
  let options: Options

  func run() throws(Failure) -> [RowResult] {
    var rowsOf: [String: Set<String>] = [:]
    var works: [[RowResult]] = []
    for contestant in contestants {
      let rows = try contestant.rows()
      rowsOf[contestant.name] = Set(rows.map(\.name))
      // The first contestant is a runtime; the rivals have some of its rows and no others.
      guard works.isEmpty else { continue }
      for row in rows where options.wants(row: row.name) {
        guard let limit = limits.rows[row.name] else { throw Failure("no limit for the row \(row.name)") }
        let result = RowResult(row: row, limit: limit, limitToC: limits.toC[row.name])
        if works.last?.first?.row.work == row.work {
          works[works.count - 1].append(result)
        } else {
          works.append([result])
        }
      }
    }
    guard !works.isEmpty else { throw Failure("no row has such a name") }
    return works.flatMap { rows in
      measure(rows, on: contestants.filter { rowsOf[$0.name]?.contains(rows[0].row.name) == true })
    }
  }

  /// Takes the contestants in turn, round by round, so that what else the machine does, and how fast
  /// it runs, meets all of them. The rows come from the same piece of work.
  private func measure(_ rows: [RowResult], on having: [Contestant]) -> [RowResult] {
    var results = rows
    let work = rows[0].row.work
    // Seconds, not nanoseconds: the row is long, and its noise small beside it.
    let rounds = rows[0].row.unit == "s" ? min(options.rounds, 2) : options.rounds
    var remaining = having
    for round in 1...rounds {
      for contestant in remaining {
        progress("\(work): round \(round) of \(rounds), \(contestant.name)")
        do throws(Failure) {
          let readings = try contestant.measure(work, quick: options.quick)
          for index in results.indices {
            guard let reading = readings[results[index].row.name] else {
              throw Failure("\(contestant.program) --row \(work): no line for \(results[index].row.name)")
            }
            try results[index].take(reading, of: contestant)
          }
        } catch {
          results[0].failures.append(error.message)
          remaining.removeAll { $0.name == contestant.name }
        }
      }
    }
    progress(nil)
    return results
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
