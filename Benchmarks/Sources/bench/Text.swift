import Glibc

/// `value` with `digits` digits after the point, rounded to nearest.
func fixed(_ value: Double, _ digits: Int) -> String {
  var scale = 1
  for _ in 0..<digits { scale *= 10 }
  let scaled = Int((value * Double(scale)).rounded())
  guard digits > 0 else { return String(scaled) }
  let fraction = String(scaled % scale)
  let zeros = String(repeating: "0", count: digits - fraction.count)
  return "\(scaled / scale).\(zeros)\(fraction)"
}

/// Three digits that matter, no more.
func short(_ value: Double) -> String {
  if value == 0 { return "0" }
  return fixed(value, value >= 100 ? 0 : value >= 10 ? 1 : value >= 1 ? 2 : 3)
}

/// A value of a row with its unit.
func amount(_ value: Double, _ unit: String) -> String { "\(short(value)) \(unit)" }

/// Rows of cells in columns: the first column to the left, the others to the right.
func table(_ lines: [[String]]) -> String {
  let columns = lines.map(\.count).max() ?? 0
  let widths = (0..<columns).map { column in
    lines.map { $0.count > column ? $0[column].count : 0 }.max() ?? 0
  }
  return lines.map { line in
    var text = ""
    for (column, cell) in line.enumerated() {
      let padding = String(repeating: " ", count: widths[column] - cell.count)
      text += column == 0 ? cell + padding : "  " + padding + cell
    }
    return text
  }.joined(separator: "\n")
}
