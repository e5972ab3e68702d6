import CBench

/// One question about many processors: how much work a second do all of those that the process may use?
struct Row: Sendable {
  let name: String
  let question: String
  /// Measures for so many milliseconds; returns operations in a second.
  let measure: @Sendable (Int) -> Measurement

  init(_ name: String, _ question: String, measure: @escaping @Sendable (Int) -> Measurement) {
    self.name = name
    self.question = question
    self.measure = measure
  }

  /// A row of passes. `pass` does so many units of work, verifies it, and says how many operations it was and how many
  /// nanoseconds it took.
  init(
    _ name: String, _ question: String,
    pass: @escaping @Sendable (_ units: Int) -> (operations: Int, nanoseconds: Int)
  ) {
    self.init(name, question) { milliseconds in
      var point = bench_point()
      point.milliseconds = milliseconds
      while bench_next_pass_of_point(&point) {
        let (operations, nanoseconds) = pass(point.units)
        bench_record_point(&point, operations, nanoseconds)
      }
      return Measurement(value: point.best, operations: point.operations, check: point.operations)
    }
  }

  static let all = submissions + entries + [actors, asyncAfter, echo, parallelLoop]
}

/// The program bench-scaling: finished, so that the loader chooses the libdispatch.so. The driver chooses the processors.
@main
enum Main {
  static func main() {
    let request = Request(rows: Row.all.map { ($0.name, [Figure($0.name, .perSecond, $0.question)]) })
    for row in Row.all where row.name == request.row {
      request.answer([Figure(row.name, .perSecond, row.question)], [row.measure(request.milliseconds)])
    }
  }
}

/// Threads of the benchmark's own, and runtimes have as many workers.
let processors = Int(bench_core_count())
