// Operations on immutable data. Their results are a function of the program: the reference computes them with
// arrays.

/// A straight-line program over four registers that hold data.
struct DataProgram: Sendable {
  /// Positions are taken modulo what is possible, so that every program is valid.
  enum Step: Sendable {
    /// Fresh bytes, copied or with a deallocator of the client.
    case make(Int, count: Int, isOwned: Bool)
    case append(Int, to: Int)
    case subrange(Int, from: Int, Int, Int)
    case map(Int)
    case regions(Int)
    case stop(Int)
    case region(Int, at: Int)
    case copy(Int, Int, Int)
    case slice(Int, Int, Int)
    case iterate(Int)
    case byte(Int, at: Int)
  }

  /// With the numbers of their operations.
  let steps: [(number: Int, step: Step)]

  init(_ operation: Operation) {
    steps = operation.inside.compactMap { inside in
      if case .step(let step) = inside.verb { (inside.number, step) } else { nil }
    }
  }

  var ownedBuffers: Int {
    steps.count { if case .make(_, let count, true) = $0.step { count > 0 } else { false } }
  }

  /// The bytes that step number `step` makes.
  static func bytes(step: Int, count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ step &* 31 &+ 1) }
  }

  /// Two positions as a range of something with `count` bytes.
  static func range(_ a: Int, _ b: Int, in count: Int) -> Range<Int> {
    let (a, b) = (a % (count + 1), b % (count + 1))
    return min(a, b)..<max(a, b)
  }

  /// What each step must show: the bytes that it reads, or the register that it changes.
  var expected: [[UInt8]] {
    var registers = [[UInt8]](repeating: [], count: 4)
    return steps.map { number, step in
      switch step {
      case .make(let to, let count, _):
        registers[to] = Self.bytes(step: number, count: count)
        return registers[to]
      case .append(let from, let to):
        registers[to] += registers[from]
        return registers[to]
      case .subrange(let to, let from, let a, let b):
        registers[to] = Array(registers[from][Self.range(a, b, in: registers[from].count)])
        return registers[to]
      case .map(let from), .regions(let from), .iterate(let from): return registers[from]
      // Whether the visit ended after the first region, and whether the region agrees with the bytes.
      case .stop, .region: return [1]
      case .copy(let from, let a, let b), .slice(let from, let a, let b):
        return Array(registers[from][Self.range(a, b, in: registers[from].count)])
      case .byte(let from, let at):
        return registers[from].isEmpty ? [] : [registers[from][at % registers[from].count]]
      }
    }
  }
}
