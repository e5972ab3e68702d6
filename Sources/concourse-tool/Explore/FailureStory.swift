import CExploring
import ConcourseSchedules

/// What happened in a run that failed: where threads were switched, and how it ended. In about ten lines.
struct FailureStory: Equatable {
  /// What a thread was about to do.
  struct Step: Equatable {
    var thread: String
    var operation: String
    /// The innermost first.
    var places: [String] = []
    /// The thread's number.
    var number = 0

    var text: String {
      "\(thread), \(operation)" + (places.isEmpty ? "" : ": " + places.joined(separator: ", in "))
    }
  }

  struct Switch: Equatable {
    var stopped: Step
    /// What ran instead; nil if it did nothing more.
    var instead: Step?
    /// The thread that ran instead, or that the time was advanced.
    var next: String
  }

  var switches: [Switch] = []
  /// What the threads were in at the end.
  var ends: [Step] = []
  /// Of a race: the later access, and the one before it.
  var accesses: [String] = []
  /// Of a deadlock: who holds what.
  var waits: [String] = []

  /// A place to name.
  struct Point {
    var thread: UInt16
    /// The decision before which the thread is there; nil at the end of the run.
    var step: UInt64?
    var addresses: [UInt64]
  }

  /// - Parameter places: Names the places of points.
  init(_ result: ScheduleResult, _ failure: ScheduleFailure, _ places: ([Point]) -> [[String]]) {
    let events = result.events
    var steps: [Step] = []
    var points: [Point] = []
    func add(_ thread: UInt16, _ operation: UInt16, _ step: UInt64?, _ addresses: [UInt64]) -> Int {
      var made = Step(thread: Self.name(thread, result), operation: Self.operation(operation))
      made.number = Int(thread)
      steps.append(made)
      points.append(Point(thread: thread, step: step, addresses: addresses))
      return steps.count - 1
    }
    func add(_ index: Int) -> Int {
      let event = events[index]
      return add(event.thread, event.operation, result.firstEvent + UInt64(index) + 1, event.addresses)
    }
    var found: [(stopped: Int, instead: Int?, next: String)] = []
    for (index, event) in events.enumerated() where event.flags & UInt8(CONCOURSE_EXPLORING_SWITCHED) != 0 {
      let isTime = event.next == ScheduleSwitch.time
      let instead = isTime ? nil : Self.firstOperation(of: event.next, in: events, after: index)
      found.append(
        (
          add(index), instead.map(add),
          isTime ? "the clock was advanced" : "\(Self.name(event.next, result)) ran instead"
        ))
    }
    var ends: [Int] = []
    switch failure {
    case .deadlock, .hang:
      for (number, thread) in result.threads.enumerated() where ScheduleResult.isStuck(thread) {
        ends.append(add(UInt16(number), thread.operation, nil, thread.addresses))
      }
    // Its accesses say where.
    case .race: break
    case .signal, .status, .stepLimit:
      if !events.isEmpty { ends.append(add(events.count - 1)) }
    }
    let named = places(points)
    for index in steps.indices { steps[index].places = named[index] }
    switches = found.map {
      Switch(stopped: steps[$0.stopped], instead: $0.instead.map { steps[$0] }, next: $0.next)
    }
    self.ends = ends.map { steps[$0] }
    // Workers that wait for work are in no place of the program.
    if failure == .deadlock || failure == .hang { self.ends.removeAll { $0.places.isEmpty } }
  }

  /// The two accesses of a race.
  static func accesses(of result: ScheduleResult, _ places: ([[UInt64]]) -> [[String]]) -> [String] {
    let found = result.accesses
    return zip(found, places(found.map(\.addresses))).map { access, places in
      let kind = (access.is_atomic != 0 ? "atomic " : "") + (access.writes != 0 ? "write" : "read")
      let size = access.size == 0 ? "" : " of \(ExploreText.count(Int(access.size), "byte"))"
      return "\(kind)\(size), \(name(access.thread, result))"
        + (places.isEmpty ? "" : ": " + places.joined(separator: ", in "))
    }
  }

  /// As the report says it.
  private static let idle = "waits for work"

  /// Adds what `concourse report` knows of the threads at the end.
  mutating func add(_ waits: FailurePlaces.Waits) {
    for index in ends.indices {
      if let activity = waits.activities[ends[index].number] { ends[index].operation = activity }
    }
    // Of a deadlock, not what has nothing to do, unless all have nothing to do.
    let others = ends.filter { $0.operation != Self.idle }
    if !others.isEmpty { ends = others }
    self.waits = waits.lines
  }

  /// The first operation of a thread that is more than the beginning of an item, if it comes before a further switch.
  private static func firstOperation(
    of thread: UInt16, in events: [concourse_exploring_event], after index: Int
  ) -> Int? {
    var first: Int?
    for place in events.indices[(index + 1)...] {
      let event = events[place]
      if event.thread == thread {
        if event.operation >= firstOperation { return place }
        if first == nil { first = place }
      }
      if first != nil && event.flags & UInt8(CONCOURSE_EXPLORING_SWITCHED) != 0 { break }
    }
    return first
  }

  /// Smaller numbers are of what happens to a thread, such as the beginning of an item.
  private static let firstOperation: UInt16 = 16

  static func name(_ number: UInt16, _ result: ScheduleResult) -> String {
    if number == 0 { return "the main thread" }
    let isEngine = Int(number) < result.threads.count && result.threads[Int(number)].is_engine != 0
    return isEngine ? "worker \(number)" : "thread \(number)"
  }

  static func operation(_ number: UInt16) -> String {
    concourse_exploring_operation_name(UInt32(number)).map { String(cString: $0) } ?? "operation \(number)"
  }
}
