import Glibc

/// A program that answers `--list` and `--row NAME`: one runtime, or a rival.
struct Contestant {
  static let incumbentName = "incumbent"
  static let concourseName = "concourse"
  static let plainCName = "C"

  let name: String
  let program: String
  /// The libdispatch.so that the program runs on; nil if it brings its own runtime.
  var library: Library?

  /// One number that can be measured.
  struct RowInfo {
    let name: String
    let unit: String
    let question: String
    /// The row to ask the program for; several numbers may come from the same work.
    let work: String
  }

  /// The rows it has.
  func rows() throws(Failure) -> [RowInfo] {
    try output(of: program, ["--list"], on: library).split(separator: "\n").map { line throws(Failure) in
      let fields = line.split(separator: "\t").map(String.init)
      guard fields.count == 3 || fields.count == 4 else {
        throw Failure("\(program) --list: cannot read: \(line)")
      }
      return RowInfo(
        name: fields[0], unit: fields[1], question: fields[2], work: fields.count == 4 ? fields[3] : fields[0]
      )
    }
  }

  /// Does one piece of work in a fresh process; returns what it printed for each row.
  func measure(_ work: String, quick: Bool) throws(Failure) -> [String: Reading] {
    try measure(work, quick ? ["--quick"] : [])
  }

  /// The same with other options.
  func measure(_ work: String, _ options: [String]) throws(Failure) -> [String: Reading] {
    let text = try output(of: program, ["--row", work] + options, on: library)
    var readings: [String: Reading] = [:]
    for line in text.split(separator: "\n") {
      let fields = line.split(separator: " ")
      guard fields.count == 4, let value = Double(fields[1]), value >= 0, value.isFinite,
        let operations = Int(fields[2]), let check = Int(fields[3])
      else { throw Failure("\(program) --row \(work): cannot read: \(text)") }
      readings[String(fields[0])] = Reading(value: value, operations: operations, check: check)
    }
    return readings
  }
}

/// What one process printed for one row.
struct Reading {
  let value: Double
  let operations: Int
  let check: Int
}

/// Rows that one program has, or one source: each is measured on all contestants that have it.
struct Suite {
  let heading: String
  let limits: Limits
  /// The first is a runtime; rivals have some of its rows and no others.
  let contestants: [Contestant]

  /// A suite, measured.
  struct Result {
    let heading: String
    let rows: [RowResult]
    let summary: Summary
    /// Names of the rivals that took part.
    let rivals: [String]
  }

  /// nil if none of its rows is wanted.
  func measure(_ options: Options) throws(Failure) -> Result? {
    var works: [[RowResult]] = []
    for row in try contestants[0].rows() where options.wants(row: row.name) {
      guard let limit = limits.rows[row.name] else { throw Failure("no limit for the row \(row.name)") }
      let result = RowResult(row: row, limit: limit, limitToC: limits.toC[row.name])
      if works.last?.first?.row.work == row.work {
        works[works.count - 1].append(result)
      } else {
        works.append([result])
      }
    }
    guard !works.isEmpty else { return nil }
    var rowsOf: [String: Set<String>] = [:]
    for contestant in contestants { rowsOf[contestant.name] = Set(try contestant.rows().map(\.name)) }
    let rows = works.flatMap { rows in
      measure(rows, on: contestants.filter { rowsOf[$0.name]?.contains(rows[0].row.name) == true }, options)
    }
    let runtimes = [Contestant.incumbentName, Contestant.concourseName]
    let rivals = contestants.map(\.name).filter { name in
      !runtimes.contains(name) && rows.contains { $0.least[name] != nil }
    }
    let summary = Summary(rows, limits, complete: options.rows.isEmpty)
    return Result(heading: heading, rows: rows, summary: summary, rivals: rivals)
  }

  /// Takes the contestants in turn, round by round, so that a busy or slow moment of the machine meets all of them. The
  /// rows come from the same piece of work.
  private func measure(_ rows: [RowResult], on having: [Contestant], _ options: Options) -> [RowResult] {
    var results = rows
    let work = rows[0].row.work
    // A row of seconds is long, and its noise small beside it.
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
func progress(_ line: String?) {
  guard isatty(STDERR_FILENO) == 1 else { return }
  writeToStandardError("\r\u{1B}[K" + (line ?? ""))
}
