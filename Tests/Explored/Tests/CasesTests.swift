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

  func testTasksAreKept() async throws {
    try await explore(schedules: 30) {
      let visits = Cell(0)
      await withTaskGroup(of: Void.self) { group in
        for _ in 1...3 { group.addTask { visits.increment() } }
      }
      XCTAssertEqual(visits.value, 3)
    }
  }

  func testTasksAreLost() async throws {
    try XCTSkipUnless(isFailureWanted)
    try await explore {
      let visits = Cell(0)
      await withTaskGroup(of: Void.self) { group in
        for _ in 1...2 { group.addTask { visits.value += 1 } }
      }
      XCTAssertEqual(visits.value, 2)
    }
  }
}
