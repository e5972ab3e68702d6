import Glibc

/// Starts the two builds of the benchmarks in turn and compares what they print.
///
/// Exit status: 0; 1 with `--check` if a limit is missed; 2 if something could not be measured.
@main
enum Main {
  static func main() {
    do throws(Failure) {
      exit(try run(Options(Array(CommandLine.arguments.dropFirst()))))
    } catch {
      writeToStandardError("bench: \(error.message)\n")
      exit(2)
    }
  }

  private static func run(_ options: Options) throws(Failure) -> Int32 {
    if options.help {
      print(Options.usage)
      return 0
    }
    if let dropIn = options.dropIn, let incumbent = options.incumbentLibrary {
      return try compareLibraries(incumbent: incumbent, concourse: dropIn, options)
    }
    let limits = try Limits(text: String(decoding: PackageResources.limits_tsv, as: UTF8.self))
    let (results, rivals) = try compareBuilds(limits, options)
    let summary = Summary(results, limits, complete: options.rows.isEmpty)
    if options.json {
      print(JSONReport(results: results, summary: summary, limits: limits, options: options).text)
    } else {
      print(
        Report(results: results, summary: summary, limits: limits, options: options, rivals: rivals).text)
    }
    if !summary.failures.isEmpty { return 2 }
    return options.check && !summary.missed.isEmpty ? 1 : 0
  }

  /// The Swift rows on both builds and on the rivals.
  /// - Returns: also the names of the rivals that took part.
  private static func compareBuilds(
    _ limits: Limits, _ options: Options
  ) throws(Failure) -> (results: [RowResult], rivals: [String]) {
    let folder = try ownFolder()
    let runtimes = [Contestant.incumbentName, Contestant.concourseName]
      .filter { options.only == nil || options.only?.rawValue == $0 }
      .map { Contestant(name: $0, program: "\(folder)/bench-\($0)") }
    // Plain C was built with us and takes part wherever there is something to compare.
    let plainC = Contestant(name: Contestant.plainCName, program: "\(folder)/rival-c")
    let rivals = (options.only == nil ? [plainC] : []) + (try options.rivals.map(buildRivals) ?? [])
    let results = try Comparison(contestants: runtimes + rivals, limits: limits, options: options).run()
    return (results, rivals.map(\.name).filter { name in results.contains { $0.least[name] != nil } })
  }

  private static func compareLibraries(
    incumbent: String, concourse: String, _ options: Options
  ) throws(Failure) -> Int32 {
    let folder = try TemporaryFolder()
    defer { folder.remove() }
    // The incumbent lies where the toolchain keeps its other libraries.
    let toolchain = incumbent.split(separator: "/", omittingEmptySubsequences: false).dropLast()
      .joined(separator: "/")
    let theirs = try Library(
      named: Contestant.incumbentName, incumbent, linkedIn: folder, toolchain: toolchain)
    let ours = try Library(
      named: Contestant.concourseName, concourse, linkedIn: folder, toolchain: toolchain)
    let programs = try ownFolder()
    let dropIn = DropIn(incumbent: theirs, concourse: ours, programs: programs, options: options)
    if let checkout = options.results { return try publish(into: checkout, dropIn, options) }
    let result =
      options.oversubscribed
      ? try Oversubscribed(incumbent: theirs, concourse: ours, programs: programs, options: options).run()
      : try dropIn.run()
    print(result.text)
    if result.failed { return 2 }
    return options.check && !result.missed.isEmpty ? 1 : 0
  }

  /// Measures everything once and writes the published results.
  private static func publish(
    into checkout: String, _ dropIn: DropIn, _ options: Options
  ) throws(Failure) -> Int32 {
    let limits = try Limits(text: String(decoding: PackageResources.limits_tsv, as: UTF8.self))
    let (rows, rivals) = try compareBuilds(limits, options)
    let swift = Results.Part(
      heading: "Swift", rows: rows, summary: Summary(rows, limits, complete: options.rows.isEmpty))
    let parts = [swift] + (try dropIn.parts())
    let failures = parts.flatMap(\.summary.failures)
    guard failures.isEmpty else { throw Failure("nothing written: " + failures.joined(separator: "; ")) }
    let startUp = try dropIn.measureStartUp()
    try Results(parts: parts, startUp: startUp, rivals: rivals, options: options).write(into: checkout)
    return 0
  }

  /// The script builds the rivals and prints a line for each: its name and its program.
  private static func buildRivals(_ script: String) throws(Failure) -> [Contestant] {
    try output(of: script, ["--programs"]).split(separator: "\n").map { line throws(Failure) in
      let fields = line.split(separator: "\t").map(String.init)
      guard fields.count == 2 else { throw Failure("\(script): cannot read: \(line)") }
      return Contestant(name: fields[0], program: fields[1])
    }
  }
}
