import ConcourseTesting
import Dispatch
import XCTest

/// Explorations in XCTest.
final class CasesTests: XCTestCase {
  func testKept() throws {
    try explore(schedules: 30) {
      let visits = Cell(0)
      DispatchQueue.concurrentPerform(iterations: 3) { _ in visits.increment() }
      XCTAssertEqual(visits.value, 3)
    }
  }

  func testLost() throws {
    try XCTSkipUnless(isFailureWanted)
    try explore {
      let visits = Cell(0)
      DispatchQueue.concurrentPerform(iterations: 2) { _ in visits.value += 1 }
      XCTAssertEqual(visits.value, 2)
    }
  }
}
