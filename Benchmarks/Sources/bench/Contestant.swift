/// A program that answers `--list` and `--row NAME`: one runtime, or a rival.
struct Contestant: Sendable {
  let name: String
  let program: String
  /// What the program is to run on, where that is not built into it.
  var library: Library?

  /// One number that can be measured.
  struct RowInfo {
    let name: String
    let unit: String
    let question: String
    /// What to ask the program for; several numbers may come from the same work.
    let work: String
  }

  /// The rows it has.
  func rows() throws(Failure) -> [RowInfo] {
    var rows: [RowInfo] = []
    for line in try output(of: program, ["--list"], on: library).split(separator: "\n") {
      let fields = line.split(separator: "\t").map(String.init)
      guard fields.count == 3 || fields.count == 4 else {
        throw Failure("\(program) --list: cannot read: \(line)")
      }
      rows.append(
        RowInfo(
          name: fields[0], unit: fields[1], question: fields[2],
          work: fields.count == 4 ? fields[3] : fields[0]))
    }
    return rows
  }

  /// Does one piece of work in a fresh process; returns what it printed for each row.
  func measure(_ work: String, quick: Bool) throws(Failure) -> [String: Reading] {
    let text = try output(of: program, ["--row", work] + (quick ? ["--quick"] : []), on: library)
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
