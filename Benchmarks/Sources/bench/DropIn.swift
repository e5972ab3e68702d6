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
    var result = Result()
    for (suite, part) in try measure() {
      let report = Report(
        results: part.rows, summary: part.summary, limits: suite.limits, options: options, rivals: [],
        heading: part.heading)
      result.parts.append(report.text)
      result.missed += part.summary.missed.map { "\(part.heading) \($0)" }
      result.failed = result.failed || !part.summary.failures.isEmpty
    }
    let startUp = try measureStartUp()
    if !startUp.isEmpty {
      let head = ["start-up", "incumbent", "Concourse", "difference", "expected", ""]
      result.parts.append(table([head] + startUp.map(\.cells)))
      result.missed += startUp.filter { !$0.holds }.map { "start-up \($0.program)" }
    }
    guard !result.parts.isEmpty else { throw Failure("no row has such a name") }
    return result
  }

  /// The parts that have wanted rows, measured.
  func parts() throws(Failure) -> [Results.Part] { try measure().map(\.1) }

  private func measure() throws(Failure) -> [(Suite, Results.Part)] {
    let suites = [
      try Suite("bench-c", "C", PackageResources.limits_c_tsv, "limits-c.tsv"),
      try Suite(
        "bench-concurrency", "Swift Concurrency", PackageResources.limits_concurrency_tsv,
        "limits-concurrency.tsv"),
    ]
    for program in suites.map(\.program) + StartUp.programs {
      for library in [incumbent, concourse] { try library.verifyMapped(by: path(program)) }
    }
    var parts: [(Suite, Results.Part)] = []
    for suite in suites {
      let contestants = [(Contestant.incumbentName, incumbent), (Contestant.concourseName, concourse)]
        .map { name, library in
          Contestant(name: name, program: path(suite.program), library: library)
        }
      guard try contestants[0].rows().contains(where: { options.wants(row: $0.name) }) else { continue }
      let rows = try Comparison(contestants: contestants, limits: suite.limits, options: options).run()
      let summary = Summary(rows, suite.limits, complete: options.rows.isEmpty)
      parts.append((suite, Results.Part(heading: suite.heading, rows: rows, summary: summary)))
    }
    return parts
  }

  /// Nothing when it is not wanted.
  func measureStartUp() throws(Failure) -> [StartUp.Result] {
    guard options.wants(row: "start-up") else { return [] }
    let startUp = StartUp(incumbent: incumbent, concourse: concourse, runs: options.quick ? 21 : 151)
    return try StartUp.programs.map { program throws(Failure) in
      try startUp.measure(program, at: path(program))
    }
  }

  private func path(_ program: String) -> String { "\(programs)/\(program)" }
}
