import Foundation
import Testing

@testable import ConcourseModel

/// A small program of atomic operations from `litmus.txt`, and which outcomes memory models allow.
struct LitmusProgram: Sendable, CustomTestStringConvertible {
  private enum Operation: Sendable {
    case load(Int, AtomicLoadOrdering)
    case store(Int, Int, AtomicStoreOrdering)
    case add(Int, Int, AtomicUpdateOrdering)
    case fence

    var reads: Bool {
      switch self {
      case .load, .add: true
      case .store, .fence: false
      }
    }
  }

  /// How the program makes its loads and additions.
  enum Form: CaseIterable {
    case plain
    /// A load is a compare-exchange that fails, and an addition a loop around one that succeeds.
    case compareExchange
  }

  let name: String
  /// The threads as the file has them, without orderings: programs of one shape differ in these only.
  let shape: String
  let isRelaxed: Bool
  private let threads: [[Operation]]
  private let words: Int
  /// What RC11 allows, what the model is to show, and what Armv8 allows.
  private(set) var rc11: Set<String> = []
  private(set) var model: Set<String> = []
  private(set) var armv8: Set<String> = []

  var testDescription: String { name }

  var threadCount: Int { threads.count }

  var hasFences: Bool {
    threads.joined().contains { if case .fence = $0 { true } else { false } }
  }

  // MARK: - The file

  static let all: [LitmusProgram] = {
    let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "litmus.txt")
    let lines = try! String(contentsOf: file, encoding: .utf8).split(separator: "\n")
    return lines.filter { !$0.hasPrefix("#") }.map { LitmusProgram(line: String($0)) }
  }()

  private init(line: String) {
    let fields = line.split(separator: ":").map { $0.trimmingCharacters(in: .whitespaces) }
    name = fields[0]
    isRelaxed = !fields[1].contains(".")
    shape = fields[1].replacing(/\.[a-z]+/, with: "")
    threads = fields[1].split(separator: "|").map { $0.split(separator: " ").map(Self.operation) }
    words = Set(fields[1].filter("xyz".contains)).count
    let plain = interleavings()
    let outcomes = fields[2...].map { field in
      plain.union(field == "-" ? [] : field.split(separator: " ").map(String.init))
    }
    (rc11, armv8, model) = (outcomes[0], outcomes[1], outcomes.count == 3 ? outcomes[2] : outcomes[0])
  }

  private static func operation(_ text: Substring) -> Operation {
    let match = text.wholeMatch(of: /([WRUF])([xyz]?)\+?(\d?)\.?(\w*)/)!.output
    let word = Array("xyz").firstIndex { match.2 == String($0) } ?? 0
    let value = Int(match.3) ?? 0
    switch (match.1, match.4) {
    case ("R", ""): return .load(word, .relaxed)
    case ("R", "acq"): return .load(word, .acquiring)
    case ("R", "sc"): return .load(word, .sequentiallyConsistent)
    case ("W", ""): return .store(word, value, .relaxed)
    case ("W", "rel"): return .store(word, value, .releasing)
    case ("W", "sc"): return .store(word, value, .sequentiallyConsistent)
    case ("U", ""): return .add(word, value, .relaxed)
    case ("U", "acq"): return .add(word, value, .acquiring)
    case ("U", "rel"): return .add(word, value, .releasing)
    case ("U", "ar"): return .add(word, value, .acquiringAndReleasing)
    case ("U", "sc"): return .add(word, value, .sequentiallyConsistent)
    case ("F", _): return .fence
    default: fatalError("litmus.txt: not an operation: \(text)")
    }
  }

  // MARK: - Outcomes

  private static func text(_ registers: [[Int]], _ memory: [Int]) -> String {
    registers.joined().map(String.init).joined() + "/" + memory.map(String.init).joined()
  }

  /// The outcomes when all threads see each operation at once.
  private func interleavings() -> Set<String> {
    var outcomes: Set<String> = []
    func go(_ places: [Int], _ memory: [Int], _ registers: [[Int]]) {
      let moves = threads.indices.filter { places[$0] < threads[$0].count }
      if moves.isEmpty { outcomes.insert(Self.text(registers, memory)) }
      for thread in moves {
        var (places, memory, registers) = (places, memory, registers)
        switch threads[thread][places[thread]] {
        case .load(let word, _): registers[thread].append(memory[word])
        case .store(let word, let value, _): memory[word] = value
        case .add(let word, let value, _):
          registers[thread].append(memory[word])
          memory[word] += value
        case .fence: break
        }
        places[thread] += 1
        go(places, memory, registers)
      }
    }
    go(threads.map { _ in 0 }, Array(repeating: 0, count: words), threads.map { _ in [] })
    return outcomes
  }

  /// The outcomes of all executions that the model explores.
  func explore(
    _ form: Form = .plain, reduce: Model.Reduction = .all, fault: PlantedFault? = nil
  ) -> Set<String> {
    var outcomes: Set<String> = []
    let result = Model.explore(name, bound: 4, stale: 4, early: true, reduce: reduce, fault: fault) {
      [self] in
      // Each register is written by one thread, so its value follows from the thread's history.
      var registers: [[Int]] = threads.map { _ in [] }
      let memory = (0..<words).map { _ in Box(0) }
      for (id, operations) in threads.enumerated() {
        Model.thread("\(id)") {
          for operation in operations {
            if let value = Self.make(operation, in: memory, form) { registers[id].append(value) }
          }
        }
      }
      Model.run()
      // ORDERING: relaxed; the threads have ended.
      outcomes.insert(Self.text(registers, memory.map { $0.word.load(ordering: .relaxed) }))
    }
    expectComplete(result)
    return outcomes
  }

  /// - Returns: what the operation has read.
  private static func make(_ operation: Operation, in memory: [Box<Int>], _ form: Form) -> Int? {
    // ORDERING: those of the program; relaxed where a compare-exchange without effect has another.
    switch (operation, form) {
    case (.load(let word, let ordering), .plain): return memory[word].word.load(ordering: ordering)
    case (.load(let word, let ordering), .compareExchange):
      return memory[word].word.compareExchange(
        expected: -1, desired: -1, successOrdering: .relaxed, failureOrdering: ordering
      ).original
    case (.store(let word, let value, let ordering), _):
      memory[word].word.store(value, ordering: ordering)
    case (.add(let word, let value, let ordering), .plain):
      return memory[word].word.wrappingAdd(value, ordering: ordering).oldValue
    case (.add(let word, let value, let ordering), .compareExchange):
      var old = memory[word].word.load(ordering: .relaxed)
      while true {
        let (exchanged, original) = memory[word].word.compareExchange(
          expected: old, desired: old + value, successOrdering: ordering, failureOrdering: .relaxed)
        if exchanged { return old }
        old = original
      }
    case (.fence, _): fatalError("the model has no fences")
    }
    return nil
  }
}
