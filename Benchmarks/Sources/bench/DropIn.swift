/// The same finished programs on two libraries: C rows, Swift Concurrency, start-up.
struct DropIn {
  let incumbent: Library
  let concourse: Library
  /// The folder with the programs.
  let programs: String
  let options: Options

  struct Result {
    var parts: [String] = []
    var missed: [String] = []
    var failed = false

    var text: String {
      let verdict =
        failed ? "FAILED" : missed.isEmpty ? "PASS" : "MISS: " + missed.joined(separator: ", ")
      return (parts + [verdict]).joined(separator: "\n\n")
    }
  }

  /// A program that has rows, and what is expected of them.
  private struct Suite {
    let program: String
    let heading: String
    let limits: Limits

    init(_ program: String, _ heading: String, _ limits: [UInt8], _ file: String) throws(Failure) {
      self.program = program
      self.heading = heading
      self.limits = try Limits(text: String(decoding: limits, as: UTF8.self), name: file)
    }
  }

  func run() throws(Failure) -> Result {
    let suites = [
      try Suite("bench-c", "C", PackageResources.limits_c_tsv, "limits-c.tsv"),
      try Suite(
        "bench-concurrency", "Swift Concurrency", PackageResources.limits_concurrency_tsv,
        "limits-concurrency.tsv"),
    ]
    for program in suites.map(\.program) + StartUp.programs {
      for library in [incumbent, concourse] { try library.verifyMapped(by: path(program)) }
    }
    var result = Result()
    for suite in suites { try measure(suite, into: &result) }
    if options.wants(row: "start-up") { try measureStartUp(into: &result) }
    guard !result.parts.isEmpty else { throw Failure("no row has such a name") }
    return result
  }

  private func measure(_ suite: Suite, into result: inout Result) throws(Failure) {
    let contestants = [(Contestant.incumbentName, incumbent), (Contestant.concourseName, concourse)]
      .map { name, library in
        Contestant(name: name, program: path(suite.program), library: library)
      }
    guard try contestants[0].rows().contains(where: { options.wants(row: $0.name) }) else { return }
    let rows = try Comparison(contestants: contestants, limits: suite.limits, options: options).run()
    let summary = Summary(rows, suite.limits, complete: options.rows.isEmpty)
    let report = Report(
      results: rows, summary: summary, limits: suite.limits, options: options, rivals: [],
      heading: suite.heading)
    result.parts.append(report.text)
    result.missed += summary.missed.map { "\(suite.heading) \($0)" }
    result.failed = result.failed || !summary.failures.isEmpty
  }

  private func measureStartUp(into result: inout Result) throws(Failure) {
    let startUp = StartUp(incumbent: incumbent, concourse: concourse, runs: options.quick ? 21 : 151)
    var lines = [["start-up", "incumbent", "Concourse", "difference", "expected", ""]]
    for program in StartUp.programs {
      let times = try startUp.measure(program, at: path(program))
      lines.append(times.cells)
      if !times.holds { result.missed.append("start-up \(program)") }
    }
    result.parts.append(table(lines))
  }

  private func path(_ program: String) -> String { "\(programs)/\(program)" }
}
