import CBench

/// One question about Swift Concurrency as the toolchain ships it, on whichever libdispatch.so the loader finds.
struct Row: Sendable {
  let name: String
  /// Operations of a full pass.
  let count: Int
  let question: String
  /// Does the work once, off the main actor, and verifies it.
  let pass: @concurrent @Sendable (Int) async -> Void

  init(
    _ name: String, count: Int, _ question: String, pass: @escaping @concurrent @Sendable (Int) async -> Void
  ) {
    self.name = name
    self.count = count
    self.question = question
    self.pass = pass
  }

  #if POOL
    static let all = onPool
  #else
    static let all = tasks + actors + handovers
  #endif

  var figures: [Figure] { [Figure(name, .nanoseconds, question)] }

  /// The measuring loop, with a shorter warm-up.
  func measure(_ scale: Scale) async -> Measurement {
    let count = scale.count(count)
    var passes = bench_passes()
    while bench_next_pass(&passes) {
      let operations = passes.begun == 1 ? max(count / 10, 1) : count
      let start = now()
      await pass(operations)
      bench_record(&passes, now() - start)
    }
    return Measurement(value: Double(passes.quickest) / Double(count), operations: count, check: count)
  }
}

@main
enum Main {
  /// Runs on the main actor, hence on the main queue, which the library services.
  static func main() async {
    let request = Request(rows: Row.all.map { ($0.name, $0.figures) })
    for row in Row.all where row.name == request.row {
      request.answer(row.figures, [await row.measure(request.scale)])
    }
  }
}
