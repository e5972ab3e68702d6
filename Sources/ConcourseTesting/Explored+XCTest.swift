import CConcourseTesting
public import XCTest

extension XCTestCase {
  /// Runs a test in many orders of its threads, and reports a failure if one fails.
  ///
  /// As `explore` in Swift Testing, but each schedule's process runs the test from its beginning, which takes some
  /// milliseconds more.
  /// - Parameters:
  ///   - schedules: How many orders are tried.
  ///   - seed: Another seed tries others.
  /// - Throws: `ExplorationError` if the test cannot be explored.
  public func explore(
    schedules: Int = 1_000, seed: UInt64 = 1, fileID: String = #fileID, filePath: StaticString = #filePath,
    line: UInt = #line, column: Int = #column, _ body: () throws -> Void
  ) throws {
    let place = place(fileID, line, column)
    if concourse_testing_name() != nil {
      guard let failures = begin(place) else { return }
      do { try body() } catch { Explorer.fail("error: \(error)") }
      end(failures)
    }
    do {
      tell(try TestExploration(place: place, schedules: schedules, seed: seed).run(), filePath, line)
    } catch let end as TestServer.NeverArrives {
      throw end.reason
    }
  }

  /// As the synchronous one, for a body that awaits.
  nonisolated(nonsending)
    public func explore(
      schedules: Int = 1_000, seed: UInt64 = 1, fileID: String = #fileID, filePath: StaticString = #filePath,
      line: UInt = #line, column: Int = #column, _ body: () async throws -> Void
    ) async throws
  {
    let place = place(fileID, line, column)
    if concourse_testing_name() != nil {
      guard let failures = begin(place) else { return }
      do { try await body() } catch { Explorer.fail("error: \(error)") }
      end(failures)
    }
    let exploration = TestExploration(place: place, schedules: schedules, seed: seed)
    do {
      tell(try await Explorer.run(exploration), filePath, line)
    } catch let end as TestServer.NeverArrives {
      throw end.reason
    }
  }

  private func tell(_ outcome: TestExploration.Outcome, _ file: StaticString, _ line: UInt) {
    if let failure = outcome.failure { XCTFail(failure, file: file, line: line) }
    if let warning = outcome.warning { print("\(file):\(line): warning: \(name) : \(warning)") }
  }

  /// Begins the exploration in a schedule's process. Returns how often the test has failed so far; nil if another
  /// exploration of the test is explored.
  private func begin(_ place: ExplorationPlace) -> Int? {
    guard let name = concourse_testing_name(), String(cString: name) == place.name else { return nil }
    concourse_testing_explore()
    return testRun?.totalFailureCount ?? 0
  }

  private func end(_ failures: Int) -> Never {
    concourse_testing_exit(testRun?.totalFailureCount ?? 0 > failures ? 1 : 0)
  }

  private func place(_ fileID: String, _ line: UInt, _ column: Int) -> ExplorationPlace {
    // "Class.method" on Linux; the runner wants "Module.Class/method".
    let method = name.split(separator: ".").last.map(String.init) ?? name
    let test = "\(String(reflecting: type(of: self)))/\(method)"
    var place = ExplorationPlace(
      fileID: fileID, line: Int(line), column: column, test: test, words: [test], isEarly: true)
    // Each run of a test has an object of its own.
    place.arrival = Arrivals.count("\(ObjectIdentifier(self)) \(place.name)")
    return place
  }
}
