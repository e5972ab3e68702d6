/// One piece of work, the same source on each runtime, and the numbers that it finds out.
struct Row: Sendable {
  let name: String
  let figures: [Figure]
  /// Returns a measurement for each figure, in their order.
  let measure: @Sendable (Scale) -> [Measurement]

  init(_ name: String, _ figures: [Figure], measure: @escaping @Sendable (Scale) -> [Measurement]) {
    self.name = name
    self.figures = figures
    self.measure = measure
  }

  /// A row with one figure, of the same name.
  ///
  /// - Parameter count: operations of a full pass; `measure` gets those of this run.
  init(
    _ name: String, _ unit: Figure.Unit = .nanoseconds, count: Int, _ question: String,
    measure: @escaping @Sendable (Int) -> Measurement
  ) {
    self.init(name, [Figure(name, unit, question)]) { [measure($0.count(count))] }
  }

  /// Every row, in the order of the report.
  static let all = submit + sync + coordination + objects + timers + events
}

/// The program bench-incumbent, and bench-concourse.
@main
enum Main {
  static func main() {
    let request = Request(rows: Row.all.map { ($0.name, $0.figures) })
    for row in Row.all where row.name == request.row {
      request.answer(row.figures, row.measure(request.scale))
    }
  }
}
