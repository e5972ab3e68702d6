import CConcourseTesting
import ConcourseSchedules
import Dispatch
import Glibc
public import Testing

/// Runs a test in many orders of its threads, and reports an issue if one fails.
///
/// Each schedule is a process of its own, in which one thread runs at a time, and a seed decides at each operation of
/// Dispatch, tasks, locks and files which thread goes on. Clocks are virtual there: they jump when no thread can go on.
///
/// What the test does before it comes here happens again in other processes, while the test's own process waits: once for
/// each exploration, and once for each schedule in XCTest and if the test has made threads. So it must not claim what only
/// one process can have, such as a port. A schedule's process ends with the body. What the test does after it happens once, in the test's own process, where the body does not run.
/// Processes that the body starts inherit the variables of the loader by which schedules run.
///
/// An issue, an error, a crash, a deadlock and a hang count as failures. The issue that reports it has a token: with
/// `CONCOURSE_REPLAY=TOKEN` in the environment, the test repeats exactly that schedule. Schedules that take many times
/// the decisions of the first one are ended, and a warning says how many. A time limit of the test does not end an
/// exploration.
///
/// The test must use the toolchain's Dispatch. With parameters, it is explored for each of their values, of which the
/// descriptions must differ. In XCTest this is a method of `XCTestCase`.
/// - Parameters:
///   - schedules: How many orders are tried, at least one.
///   - seed: Another seed tries others.
/// - Throws: `ExplorationError` if the test cannot be explored.
nonisolated(nonsending)
  public func explore(
    schedules: Int = 1_000, seed: UInt64 = 1, fileID: String = #fileID, filePath: String = #filePath,
    line: Int = #line, column: Int = #column, _ body: () async throws -> Void
  ) async throws
{
  guard let test = Test.current else {
    throw ExplorationError("explore() is called outside of a test of Swift Testing")
  }
  let location = SourceLocation(fileID: fileID, filePath: filePath, line: line, column: column)
  try await Explorer.explore(test, at: location, schedules, seed, body)
}

extension Trait where Self == ExplorationTrait {
  /// The test runs in many orders of its threads, as with ``explore(schedules:seed:fileID:filePath:line:column:_:)``.
  public static func explored(schedules: Int = 1_000, seed: UInt64 = 1) -> Self {
    ExplorationTrait(schedules: schedules, seed: seed)
  }
}

/// What `.explored(schedules:seed:)` makes of a test.
public struct ExplorationTrait: TestTrait, TestScoping {
  let schedules: Int
  let seed: UInt64

  /// Explores the test. Swift Testing calls this instead of the test's function.
  public func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
  ) async throws {
    try await Explorer.explore(test, at: test.sourceLocation, schedules, seed, function)
  }
}

enum Explorer {
  /// Explorations at the same time: as many as the machine has processors.
  private static let lanes = (0..<max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))).map {
    DispatchQueue(label: "explorations \($0)")
  }

  nonisolated(nonsending)
    static func explore(
      _ test: Test, at location: SourceLocation, _ schedules: Int, _ seed: UInt64,
      _ body: () async throws -> Void
    ) async throws
  {
    var place = place(of: test, location)
    if test.isParameterized { place.arguments = Test.Case.current.map(fingerprint) }
    let key = "\(test.id) \(place.name)"
    place.arrival = Arrivals.count(key)
    if let name = concourse_testing_name() {
      // Another one of the same test.
      guard String(cString: name) == place.name else { return }
      await runSchedule(of: test, body)
    }
    let outcome: TestExploration.Outcome
    do {
      outcome = try await run(TestExploration(place: place, schedules: schedules, seed: seed))
    } catch let end as TestServer.NeverArrives {
      guard isRepeated else { throw end.reason }
      Arrivals.restart(key)
      place.arrival = 1
      outcome = try await run(TestExploration(place: place, schedules: schedules, seed: seed))
    }
    if let failure = outcome.failure { Issue.record(Comment(rawValue: failure), sourceLocation: location) }
    if let warning = outcome.warning {
      Issue.record(Comment(rawValue: warning), severity: .warning, sourceLocation: location)
    }
  }

  /// Whether the runner may begin a test anew in this process.
  private static let isRepeated = CommandLine.arguments.contains {
    $0.hasPrefix("--repetitions") || $0.hasPrefix("--repeat-until")
  }

  /// Runs an exploration on a thread that may wait.
  nonisolated(nonsending)
    static func run(_ exploration: TestExploration) async throws -> TestExploration.Outcome
  {
    let lane = lanes[Arrivals.count("lanes") % lanes.count]
    return try await withCheckedThrowingContinuation { continuation in
      lane.async { continuation.resume(with: Result { try exploration.run() }) }
    }
  }

  /// Runs the body in a process of its own, and ends that.
  nonisolated(nonsending)
    private static func runSchedule(of test: Test, _ body: () async throws -> Void) async -> Never
  {
    // SAFETY: the body does not outlive this call, and is called once.
    nonisolated(unsafe) let body = body
    let trait = IssueHandlingTrait.compactMapIssues { issue in
      guard issue.isFailure else { return nil }
      let place = issue.sourceLocation.map { "\($0): " } ?? ""
      fail("\(place)\(issue)")
    }
    concourse_testing_serve()
    // The process has the usual executors now. The thread of `main` must be free for the main queue.
    await Task.yield()
    concourse_testing_explore()
    do {
      try await withoutActuallyEscaping(body) { body in
        // SAFETY: as above.
        nonisolated(unsafe) let body = body
        try await trait.provideScope(for: test, testCase: Test.Case.current) { try await body() }
      }
    } catch {
      fail("error: \(error)")
    }
    concourse_testing_exit(0)
  }

  /// Ends the process of a schedule.
  static func fail(_ text: String) -> Never {
    let line = Array("\(text)\n".utf8)
    write(STDOUT_FILENO, line, line.count)
    concourse_testing_exit(1)
  }

  /// Of the values of the parameters, the same in each process. Addresses, which descriptions of private types have, are
  /// left out.
  private static func fingerprint(of testCase: Test.Case) -> UInt64 {
    let parts = "\(testCase)".split(separator: "$", omittingEmptySubsequences: false)
    var print = Fingerprint(parts[0].utf8)
    for part in parts.dropFirst() { print.add(part.drop { $0.isHexDigit }.utf8) }
    return print.value
  }

  private static func place(of test: Test, _ location: SourceLocation) -> ExplorationPlace {
    let name = test.id.nameComponents.joined(separator: "/")
    let id = "\(test.id.moduleName).\(name)/"
    // An expression that matches just this.
    let pattern = id.map { $0.isLetter || $0.isNumber || $0 == "_" ? "\($0)" : "\\\($0)" }.joined()
    return ExplorationPlace(
      fileID: location.fileID, line: location.line, column: location.column,
      test: String(name.prefix { $0 != "(" }),
      words: ["--testing-library", "swift-testing", "--filter", "^\(pattern)"])
  }
}
