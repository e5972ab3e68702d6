import Glibc

/// Starts the programs in turn and compares what they print.
///
/// Exit status: 0; 1 with `--check` if a limit is missed; 2 if something could not be measured.
@main
enum Main {
  static func main() {
    do throws(Failure) {
      let verdict = try run(try Options(Array(CommandLine.arguments.dropFirst())))
      exit(verdict)
    } catch {
      writeToStandardError("bench: \(error.message)\n")
      exit(2)
    }
  }

  private static func run(_ options: Options) throws(Failure) -> Int32 {
    let folder = try ownFolder()
    var suites: [Suite] = []
    var startUps: [StartUp] = []
    var libraries: Libraries?
    defer { libraries?.remove() }
    if options.dropIn == nil || options.results != nil && !options.scaling {
      suites.append(try swiftRows(folder, options))
    }
    if let incumbent = options.incumbentLibrary, let concourse = options.dropIn {
      let linked = try Libraries(incumbent: incumbent, concourse: concourse)
      libraries = linked
      if options.oversubscribed {
        let program = "\(folder)/bench-oversubscribed"
        return try Oversubscribed(libraries: linked, program: program, options: options).run()
      }
      if options.scaling { return try scaling(folder, linked, options) }
      if options.recording {
        try linked.verifyMapped(by: "\(folder)/bench-c")
        return try recordingCost(folder, linked, options)
      }
      suites += try finishedPrograms(folder, linked, options)
      if options.wants(row: "start-up") {
        startUps = ["hello-c", "hello-swift"].map { StartUp(program: $0, folder: folder, libraries: linked) }
      }
    }
    let parts = try suites.map { suite throws(Failure) in try suite.measure(options) }.compactMap { $0 }
    let runs = options.quick ? 21 : 151
    let startUp = try startUps.map { startUp throws(Failure) in try startUp.measure(runs: runs) }
    guard !parts.isEmpty || !startUp.isEmpty else { throw Failure("no row has such a name") }
    let verdict = try report(parts, startUp, options)
    guard options.results != nil, let libraries else { return verdict }
    return max(verdict, try recordingCost(folder, libraries, options))
  }

  private static func report(
    _ parts: [Suite.Result], _ startUp: [StartUp.Result], _ options: Options
  ) throws(Failure) -> Int32 {
    let failures = parts.flatMap(\.summary.failures)
    if let checkout = options.results {
      guard failures.isEmpty else { throw Failure("nothing written: " + failures.joined(separator: "; ")) }
      try Results(parts: parts, startUp: startUp, options: options).write(into: checkout)
    } else if options.json {
      for part in parts { print(JSONReport(part: part, options: options).text) }
    } else {
      print(Report(parts: parts, startUp: startUp, options: options).text)
    }
    if !failures.isEmpty { return 2 }
    let missed = parts.contains { !$0.summary.missed.isEmpty } || startUp.contains { !$0.holds }
    return options.check && missed ? 1 : 0
  }

  /// One finished program on both libraries, and rivals, by processors. With `--results`, a page and a chart.
  private static func scaling(
    _ folder: String, _ libraries: Libraries, _ options: Options
  ) throws(Failure) -> Int32 {
    let program = "\(folder)/bench-scaling"
    try libraries.verifyMapped(by: program)
    let contestants =
      libraries.both.map { Contestant(name: $0.name, program: program, library: $0.library) }
      + rivals(["oneTBB": "scaling-tbb", "Go": "scaling-go"], folder, options)
    let scaling = Scaling(contestants: contestants, options: options, processors: try Processors())
    let result = try scaling.measure()
    let report = ScalingReport(result: result, scaling: scaling)
    print(report.text)
    guard result.failures.isEmpty else { return 2 }
    if let checkout = options.results { try report.write(into: checkout) }
    return 0
  }

  /// - Parameter programs: by the names of the rivals; those take part that `--also` names.
  private static func rivals(
    _ programs: [String: String], _ folder: String, _ options: Options
  ) -> [Contestant] {
    options.also.compactMap { name in
      programs[name].map { Contestant(name: name, program: "\(folder)/\($0)") }
    }
  }

  /// With `--results`, replaces that part of the published results.
  private static func recordingCost(
    _ folder: String, _ libraries: Libraries, _ options: Options
  ) throws(Failure) -> Int32 {
    let concourse = libraries.both[1].library
    let results = try RecordingCost(program: "\(folder)/bench-c", library: concourse).measure(options)
    if let checkout = options.results {
      try Results(parts: [], startUp: [], options: options).replaceRecording(results, in: checkout)
    }
    let missed = results.filter { !$0.holds }.map(\.row)
    print(table([RecordingCost.Result.head] + results.map(\.cells)) + "\n\n" + verdict(missed: missed))
    return options.check && !missed.isEmpty ? 1 : 0
  }

  /// One source, built for each runtime; and the rivals.
  private static func swiftRows(_ folder: String, _ options: Options) throws(Failure) -> Suite {
    var contestants = [Contestant.incumbentName, Contestant.concourseName]
      .filter { options.only == nil || options.only?.rawValue == $0 }
      .map { Contestant(name: $0, program: "\(folder)/bench-\($0)") }
    // Plain C needs only the toolchain and takes part in every comparison.
    if options.only == nil {
      contestants.append(Contestant(name: Contestant.plainCName, program: "\(folder)/rival-c"))
    }
    if options.rivals {
      contestants.append(Contestant(name: "oneTBB", program: "\(folder)/rival-tbb"))
      contestants.append(Contestant(name: "Go", program: "\(folder)/rival-go"))
    }
    let limits = try Limits(PackageResources.limits_tsv, name: "limits.tsv")
    return Suite(heading: "Swift", limits: limits, contestants: contestants)
  }

  /// The same finished programs on two libraries; and the rivals.
  private static func finishedPrograms(
    _ folder: String, _ libraries: Libraries, _ options: Options
  ) throws(Failure) -> [Suite] {
    for program in ["bench-c", "bench-concurrency", "hello-c", "hello-swift"] {
      try libraries.verifyMapped(by: "\(folder)/\(program)")
    }
    func contestants(_ program: String) -> [Contestant] {
      libraries.both.map { Contestant(name: $0.name, program: "\(folder)/\(program)", library: $0.library) }
    }
    let rivals = rivals(
      ["pool": "bench-pool", "Go": "concurrency-go", "tokio": "concurrency-tokio"], folder, options)
    return [
      Suite(
        heading: "C", limits: try Limits(PackageResources.limits_c_tsv, name: "limits-c.tsv"),
        contestants: contestants("bench-c")),
      Suite(
        heading: "Swift Concurrency",
        limits: try Limits(PackageResources.limits_concurrency_tsv, name: "limits-concurrency.tsv"),
        contestants: contestants("bench-concurrency") + rivals),
    ]
  }
}
