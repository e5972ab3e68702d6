import Foundation

@testable import ConcourseModel

/// The names of fields, from the engine's sources: an access has a place, whose line names the field.
struct FieldNames {
  private var files: [String: [String]] = [:]
  private let sources = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .appending(path: "ConcourseModel")

  /// The classes of the objects on a line, and the fields that cause at least a tenth of its moves.
  mutating func name(of line: Ledger.Line) -> String {
    let fields = fields(of: line).filter { $0.share >= 0.1 }.map(\.name).joined(separator: ", ")
    return line.classes.isEmpty ? fields : line.classes.joined(separator: " and ") + ": " + fields
  }

  /// The other fields that move it; they tell which object it belongs to.
  mutating func others(of line: Ledger.Line) -> String {
    let others = fields(of: line).filter { $0.share < 0.1 }.prefix(3).map(\.name)
    return others.isEmpty ? "" : " (with " + others.joined(separator: ", ") + ")"
  }

  private mutating func fields(of line: Ledger.Line) -> [(name: String, share: Double)] {
    var moves: [String: Int] = [:]
    for (field, count) in line.moves { moves[name(of: field), default: 0] += count }
    let all = Double(line.moves.values.reduce(0, +))
    return moves.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { ($0.key, Double($0.value) / all) }
  }

  mutating func name(of field: Ledger.Field) -> String {
    switch field {
    case .node: return "WorkNode"
    case .object(let type): return type == "closure" ? "a closure" : "references of \(type)"
    case .place(let file, let number):
      let type = file.split(separator: "/").last!.dropLast(".swift".count)
      let lines = lines(of: String(type))
      guard lines.indices.contains(Int(number) - 1) else { return "\(type):\(number)" }
      // A call may be broken into lines; the operation is in the one that is recorded, its word there or just before.
      let text = lines[max(0, Int(number) - 2)...Int(number) - 1].joined(separator: " ")
      let operation =
        /(\w+)\s*\.(?:load|store|exchange|compareExchange|weakCompareExchange|wrappingAdd|wrappingSubtract|add|subtract|bitwise\w+|min|max|logical\w+)\(/
      guard let match = text.matches(of: operation).last else { return "\(type):\(number)" }
      return match.1 == "next" ? "WorkNode" : "\(type).\(match.1)"
    }
  }

  private mutating func lines(of file: String) -> [String] {
    if let known = files[file] { return known }
    var found: [String] = []
    for folder in (try? FileManager.default.contentsOfDirectory(atPath: sources.path)) ?? [] {
      let path = sources.appending(path: folder).appending(path: file + ".swift")
      guard let text = try? String(contentsOf: path, encoding: .utf8) else { continue }
      found = text.components(separatedBy: "\n")
    }
    files[file] = found
    return found
  }
}
