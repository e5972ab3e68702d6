import Testing

@testable import ConcourseRuntime

/// Which waits of tasks are named (CONCOURSE_STRICT); the programs of Tests/TaskPrograms show the lines.
@Suite("BlockingPlaces")
final class BlockingPlacesTests {
  let places = BlockingPlaces()

  deinit { places.deallocate() }

  private func admit(_ stack: [UInt], _ place: String?) -> BlockingPlaces.Admission {
    places.admit(stack) { place }
  }

  @Test("a place is new once, also with another stack")
  func once() {
    #expect(admit([1, 2], "f") == .new("f"))
    #expect(admit([1, 2], "f") == .known)
    #expect(admit([1, 3], "f") == .known)
    #expect(admit([5], "g") == .new("g"))
  }

  @Test("the place of a known stack is not looked for")
  func cost() {
    #expect(admit([1], "f") == .new("f"))
    let again = places.admit([1]) {
      Issue.record("asked for the place")
      return nil
    }
    #expect(again == .known)
  }

  @Test("a stack whose place cannot be told is new once")
  func untold() {
    #expect(admit([1], nil) == .new(nil))
    #expect(admit([1], nil) == .known)
    #expect(admit([2], nil) == .new(nil))
    #expect(admit([], nil) == .new(nil))
  }

  @Test("64 places are named, and the end is said once")
  func manyPlaces() {
    for number in 0..<BlockingPlaces.most { #expect(admit([UInt(number)], "\(number)") == .new("\(number)")) }
    #expect(admit([1000], "1000") == .tooMany(isFirst: true))
    #expect(admit([1001], "1001") == .tooMany(isFirst: false))
    #expect(admit([1], "1") == .known)
    #expect(admit([1002], "1") == .known)
  }

  @Test("256 stacks are told apart, and the end is said once")
  func manyStacks() {
    #expect(admit([0], "f") == .new("f"))
    for number in 1..<BlockingPlaces.mostStacks { #expect(admit([UInt(number)], "f") == .known) }
    #expect(admit([1000], "f") == .tooMany(isFirst: true))
    #expect(admit([1001], "g") == .tooMany(isFirst: false))
    #expect(admit([255], "f") == .known)
  }

  @Test("of threads that come at once, one finds the place new")
  func race() async {
    let new = await withTaskGroup(of: Int.self) { group in
      for number in 0..<64 {
        let places = places
        group.addTask { places.admit([UInt(number % 8)]) { "\(number % 8)" } == .known ? 0 : 1 }
      }
      return await group.reduce(0, +)
    }
    #expect(new == 8)
  }
}
