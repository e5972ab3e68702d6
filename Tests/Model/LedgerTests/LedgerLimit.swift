import Foundation

@testable import ConcourseModel

/// One row of `limits.txt`: how many moves an operation of a path may cost on a number of threads.
struct LedgerLimit: Sendable, CustomStringConvertible {
  /// Moves of all lines, and of the line that moves most, in one operation.
  struct Moves: Sendable {
    var all: Double
    var onOneLine: Double
  }

  let path: String
  let threads: Int
  var known: Moves
  /// In per cent.
  let tolerance: Double

  /// The schedules, of which the median counts. Many threads take long, and their schedules differ less.
  static func seeds(_ threads: Int) -> ClosedRange<UInt64> { threads < 64 ? 1...3 : 1...1 }

  static let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "limits.txt")

  var description: String { "\(path), \(threads) threads" }

  // MARK: Measuring

  /// The moves now, and a ledger that shows them.
  func measure() throws -> (now: Moves, ledger: Ledger) {
    guard let path = LedgerPath.all.first(where: { $0.name == path }) else { throw Failure("no such path") }
    return try Self.measure(path, threads)
  }

  static func measure(_ path: LedgerPath, _ threads: Int) throws -> (now: Moves, ledger: Ledger) {
    let ledgers = try seeds(threads).map { seed in
      let (result, ledger) = path.run(threads: threads, seed: seed)
      guard result.failure == nil else { throw Failure("\(result)") }
      return ledger
    }
    func median(_ number: (Ledger) -> Double) -> Double { ledgers.map(number).sorted()[ledgers.count / 2] }
    return (Moves(all: median(\.perOperation), onOneLine: median(\.perOperationOnOneLine)), ledgers[0])
  }

  struct Failure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
  }

  // MARK: Judging

  enum Verdict {
    case holds
    /// So much that the row should be tightened.
    case better
    case exceeded
  }

  func verdict(_ now: Moves) -> Verdict {
    let pairs = [(now.all, known.all), (now.onOneLine, known.onOneLine)]
    if pairs.contains(where: { $0 > most($1) }) { return .exceeded }
    // Better by twice what it may be worse.
    return pairs.contains { $0 < $1 - 2 * (most($1) - $1) } ? .better : .holds
  }

  /// (A shared write more is about one move. Less than a twentieth is left to the schedule.)
  private func most(_ known: Double) -> Double { known * (1 + tolerance / 100) + 0.05 }

  /// How the row compares, in one line.
  func comparison(_ now: Moves) -> String {
    func text(_ moves: Moves) -> String {
      String(format: "%.2f moves, %.2f of them of one line", moves.all, moves.onOneLine)
    }
    return "\(self): \(text(now)); limits.txt allows \(tolerance.formatted()) % more than \(text(known))"
  }

  // MARK: The file

  /// The rows. A line that is none is an error.
  static func read() throws -> [LedgerLimit] {
    try String(contentsOf: file, encoding: .utf8).split(separator: "\n").compactMap { line in
      if line.hasPrefix("#") { return nil }
      guard let row = LedgerLimit(line: line) else { throw Failure("limits.txt: not a row: \(line)") }
      return row
    }
  }

  private init?(line: Substring) {
    let fields = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
    guard fields.count == 5, let threads = Int(fields[1]), let all = Double(fields[2]),
      let onOneLine = Double(fields[3]), let tolerance = Double(fields[4])
    else { return nil }
    (path, self.threads, self.tolerance) = (fields[0], threads, tolerance)
    known = Moves(all: all, onOneLine: onOneLine)
  }

  /// The row as it stands in the file.
  private var line: String {
    path.padding(toLength: 31, withPad: " ", startingAt: 0)
      + String(format: "| %2d | %5.2f | %5.2f | %2.0f", threads, known.all, known.onOneLine, tolerance)
  }

  /// Replaces the rows of the file; its remarks stay.
  static func write(_ rows: [LedgerLimit]) throws {
    var rows = rows[...]
    let lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map { line in
      line.hasPrefix("#") ? String(line) : rows.removeFirst().line
    }
    try (lines.joined(separator: "\n") + "\n").write(to: file, atomically: true, encoding: .utf8)
  }
}

extension Ledger {
  /// Moves of the line that moves most.
  var perOperationOnOneLine: Double {
    Double(lines.values.map { $0.moves.values.reduce(0, +) }.max() ?? 0) / Double(counted)
  }
}
