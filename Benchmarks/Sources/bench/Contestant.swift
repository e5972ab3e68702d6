/// A program that answers `--list` and `--row NAME`: one runtime, or a rival.
struct Contestant: Sendable {
  let name: String
  let program: String

  struct RowInfo {
    let name: String
    let unit: String
    let question: String
  }

  /// The rows it has.
  func rows() throws(Failure) -> [RowInfo] {
    var rows: [RowInfo] = []
    for line in try output(of: program, ["--list"]).split(separator: "\n") {
      let fields = line.split(separator: "\t").map(String.init)
      guard fields.count == 3 else { throw Failure("\(program) --list: cannot read: \(line)") }
      rows.append(RowInfo(name: fields[0], unit: fields[1], question: fields[2]))
    }
    return rows
  }

  /// Measures one row in a fresh process.
  func measure(_ row: String, quick: Bool) throws(Failure) -> Reading {
    let text = try output(of: program, ["--row", row] + (quick ? ["--quick"] : []))
    let fields = text.split { $0 == " " || $0 == "\n" }
    guard fields.count == 4, fields[0] == row, let value = Double(fields[1]), value > 0,
      let operations = Int(fields[2]), let check = Int(fields[3])
    else { throw Failure("\(program) --row \(row): cannot read: \(text)") }
    return Reading(value: value, operations: operations, check: check)
  }
}

/// What one process printed for one row.
struct Reading {
  let value: Double
  let operations: Int
  let check: Int
}
