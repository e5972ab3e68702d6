import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

@Suite("The schedule of a descriptor")
struct DescriptorScheduleTests {
  private final class Operation {
    let name: String
    init(_ name: String) { self.name = name }
  }

  private typealias Schedule = DescriptorSchedule<Operation, String>

  private func started(_ schedule: inout Schedule) -> [String] {
    var names: [String] = []
    while let start = schedule.start() {
      switch start {
      case .operation(let operation): names.append(operation.name)
      case .barrier(let name): names.append("|" + name)
      }
    }
    return names
  }

  @Test("S123 stream operations run one after another in each direction, random ones concurrently")
  func lanes() {
    var schedule = Schedule()
    schedule.add(Operation("r1"), .streamRead)
    schedule.add(Operation("r2"), .streamRead)
    schedule.add(Operation("w1"), .streamWrite)
    schedule.add(Operation("x1"), .random)
    schedule.add(Operation("x2"), .random)
    #expect(Set(started(&schedule)) == ["r1", "w1", "x1", "x2"])
    schedule.finish(.streamWrite)
    #expect(started(&schedule).isEmpty)
    schedule.finish(.streamRead)
    #expect(started(&schedule) == ["r2"])
    schedule.finish(.streamRead)
    schedule.finish(.random)
    #expect(!schedule.isIdle)
    schedule.finish(.random)
    #expect(schedule.isIdle)
  }

  @Test("the number of concurrent random operations is bounded")
  func width() {
    var schedule = Schedule()
    for number in 0..<100 { schedule.add(Operation("\(number)"), .random) }
    var names = started(&schedule)
    #expect(names.count == Schedule.randomWidth)
    while names.count < 100 {
      schedule.finish(.random)
      names += started(&schedule)
    }
    #expect(names == (0..<100).map { "\($0)" })
  }

  @Test("S132 a barrier waits for all earlier operations and holds back all later ones")
  func barriers() {
    var schedule = Schedule()
    schedule.add(Operation("r1"), .streamRead)
    schedule.add(Operation("w1"), .streamWrite)
    schedule.addBarrier("a")
    schedule.addBarrier("b")
    schedule.add(Operation("x1"), .random)
    #expect(started(&schedule) == ["r1", "w1"])
    schedule.finish(.streamRead)
    #expect(started(&schedule).isEmpty)
    schedule.finish(.streamWrite)
    #expect(started(&schedule) == ["|a"])
    #expect(!schedule.isIdle)
    schedule.finishBarrier()
    #expect(started(&schedule) == ["|b"])
    schedule.finishBarrier()
    #expect(started(&schedule) == ["x1"])
    schedule.finish(.random)
    #expect(schedule.isIdle)
  }

  @Test("a schedule is idle only when nothing waits and nothing runs", arguments: 0..<3)
  func idle(lane: Int) {
    let lane = [Schedule.Lane.streamRead, .streamWrite, .random][lane]
    var schedule = Schedule()
    #expect(schedule.isIdle)
    for name in ["1", "2"] {
      schedule.add(Operation(name), lane)
      #expect(!schedule.isIdle)
    }
    #expect(started(&schedule) == (lane == .random ? ["1", "2"] : ["1"]))
    schedule.finish(lane)
    if lane != .random { #expect(started(&schedule) == ["2"]) }
    #expect(!schedule.isIdle)
    schedule.finish(lane)
    #expect(schedule.isIdle)

    schedule.addBarrier("a")
    #expect(!schedule.isIdle)
    #expect(started(&schedule) == ["|a"])
    #expect(!schedule.isIdle)
    schedule.finishBarrier()
    #expect(schedule.isIdle)
  }

  @Test("operations that have not started can be withdrawn, on both sides of a barrier")
  func withdrawal() {
    var schedule = Schedule()
    for name in ["r1", "r2", "keep"] { schedule.add(Operation(name), .streamRead) }
    schedule.addBarrier("a")
    schedule.add(Operation("r3"), .streamWrite)
    schedule.add(Operation("r4"), .random)
    #expect(started(&schedule) == ["r1"])
    #expect(schedule.withdraw { $0.name.hasPrefix("r") }.map(\.name) == ["r2", "r3", "r4"])
    schedule.finish(.streamRead)
    #expect(started(&schedule) == ["keep"])
    schedule.finish(.streamRead)
    #expect(started(&schedule) == ["|a"])
    schedule.finishBarrier()
    #expect(schedule.isIdle)
  }

  @Test("the list of waiting operations keeps its order, however long it is")
  func fifo() {
    var fifo = Fifo<Int>()
    var expected = 0
    for number in 0..<10_000 {
      fifo.append(number)
      if number % 3 != 0 {
        #expect(fifo.removeFirst() == expected)
        expected += 1
      }
    }
    #expect(fifo.count == 10_000 - expected)
    #expect(fifo.removeAll { $0 % 2 == 0 }.count == fifo.count)
    while !fifo.isEmpty { #expect(fifo.removeFirst() % 2 == 1) }
  }
}
