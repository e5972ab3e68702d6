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
    if let name = concourse_testing_name() {
      guard String(cString: name) == place.name else { return }
      let failures = testRun?.totalFailureCount ?? 0
      concourse_testing_explore()
      do { try body() } catch { Explorer.fail("error: \(error)") }
      concourse_testing_exit(testRun?.totalFailureCount ?? 0 > failures ? 1 : 0)
    }
    if let failure = try TestExploration(place: place, schedules: schedules, seed: seed).run() {
      XCTFail(failure, file: filePath, line: line)
    }
  }

  private func place(_ fileID: String, _ line: UInt, _ column: Int) -> ExplorationPlace {
    // "Class.method" on Linux; the runner wants "Module.Class/method".
    let method = name.split(separator: ".").last.map(String.init) ?? name
    let test = "\(String(reflecting: type(of: self)))/\(method)"
    return ExplorationPlace(
      fileID: fileID, line: Int(line), column: column, test: test, arguments: [test], isEarly: true)
  }
}
