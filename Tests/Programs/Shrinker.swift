/// Finds a small program that still fails, by delta debugging: it leaves out ever smaller parts.
struct Shrinker {
  /// Whether a program still fails. A failure that depends on timing needs several attempts.
  let fails: (Program) -> Bool
  /// How many candidates may be tried.
  var limit = 400

  func shrink(_ program: Program) -> Program {
    var (tried, best) = (0, program)
    func stillFails(_ numbers: Set<Int>) -> Bool {
      let candidate = program.keeping(numbers)
      guard tried < limit, candidate.isSafe else { return false }
      tried += 1
      guard fails(candidate) else { return false }
      best = candidate
      return true
    }
    func withInside(_ operation: Operation) -> [Int] {
      [operation.number] + operation.inside.flatMap(withInside)
    }

    // Whole threads first, then parts of all operations, then each with what is inside it, then each alone.
    for thread in program.threads.indices {
      let gone = Set(program.threads[thread].flatMap(withInside))
      _ = stillFails(Set(best.operations.map(\.number)).subtracting(gone))
    }
    var part = max(best.operations.count / 2, 1)
    while part > 1 {
      let numbers = best.operations.map(\.number)
      for start in stride(from: 0, to: numbers.count, by: part) {
        let gone = Set(numbers[start..<min(start + part, numbers.count)])
        _ = stillFails(Set(best.operations.map(\.number)).subtracting(gone))
      }
      part /= 2
    }
    var before: Int
    repeat {
      before = best.operations.count
      for operation in best.operations {
        let numbers = Set(best.operations.map(\.number))
        guard numbers.contains(operation.number) else { continue }
        if !operation.inside.isEmpty, stillFails(numbers.subtracting(withInside(operation))) { continue }
        _ = stillFails(numbers.subtracting([operation.number]))
      }
    } while best.operations.count < before && tried < limit
    return best
  }
}
