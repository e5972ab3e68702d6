import CExploring
import ConcourseSchedules

/// What a failed exploration says: in about ten lines.
enum ExplorationStory {
  private static let mostLines = 20
  private static let mostSwitches = 8

  static func output(_ result: ScheduleResult) -> [String] {
    // The names in Swift's stack traces are unknown, since this process may not start another one.
    String(decoding: result.output, as: UTF8.self).split(separator: "\n").filter {
      $0 != "Current stack trace:" && !($0.first?.isNumber == true && $0.contains("  0x"))
    }.prefix(mostLines).map { "  | \($0)" }
  }

  /// - Parameters:
  ///   - result: Of a run with events.
  ///   - count: How many switches the run had that failed first.
  static func lines(
    _ result: ScheduleResult, of count: Int?, _ failure: ScheduleFailure,
    _ symbols: ExplorationSymbols
  ) -> [String] {
    let made = result.made.count
    var lines = output(result)
    lines.append(
      made == 0
        ? "it needs no switch: the threads run in their usual order"
        : "it needs \(made) \(made == 1 ? "switch" : "switches")\(count.map { " (of \($0))" } ?? ""):")
    let events = result.events
    let switched = events.indices.filter { events[$0].flags & UInt8(CONCOURSE_EXPLORING_SWITCHED) != 0 }
      .prefix(mostSwitches)
    var steps = switched.map { Step(events[$0].thread, events[$0].operation, events[$0].addresses) }
    let instead = switched.map { firstOperation(of: events[$0].next, in: events[($0 + 1)...]) }
    steps += instead.compactMap { $0 }.map { Step($0.thread, $0.operation, $0.addresses) }
    let ends = result.threads.enumerated().filter { _, thread in
      failure == .deadlock || failure == .hang ? ScheduleResult.isStuck(thread) : false
    }.map { Step(UInt16($0.offset), $0.element.operation, $0.element.addresses) }
    let places = symbols.places((steps + ends).map(\.addresses))
    for (number, index) in switched.enumerated() {
      lines.append("  \(number + 1). stopped: \(text(steps[number], places[number]))")
      guard events[index].next != ScheduleSwitch.time else {
        lines.append("     the clock was advanced")
        continue
      }
      let before = instead[..<number].count { $0 != nil }
      if instead[number] != nil {
        let place = switched.count + before
        lines.append("     instead: \(text(steps[place], places[place]))")
      } else {
        lines.append("     \(name(events[index].next)) ran instead")
      }
    }
    for (index, end) in ends.enumerated() where !places[steps.count + index].isEmpty {
      lines.append("  at the end: \(text(end, places[steps.count + index]))")
    }
    return lines
  }

  /// What a thread was about to do.
  private struct Step {
    let thread: UInt16
    let operation: UInt16
    let addresses: [UInt64]

    init(_ thread: UInt16, _ operation: UInt16, _ addresses: [UInt64]) {
      (self.thread, self.operation, self.addresses) = (thread, operation, addresses)
    }
  }

  /// Smaller numbers are of what happens to a thread, such as the beginning of an item.
  private static let firstOperation: UInt16 = 16

  /// The first operation of a thread that is more than the beginning of an item, if it comes before a further switch.
  private static func firstOperation(
    of thread: UInt16, in events: ArraySlice<concourse_exploring_event>
  ) -> concourse_exploring_event? {
    var first: concourse_exploring_event?
    for event in events {
      if event.thread == thread {
        if event.operation >= firstOperation { return event }
        if first == nil { first = event }
      }
      if first != nil && event.flags & UInt8(CONCOURSE_EXPLORING_SWITCHED) != 0 { break }
    }
    return first
  }

  private static func name(_ thread: UInt16) -> String {
    thread == 0 ? "the main thread" : "thread \(thread)"
  }

  private static func text(_ step: Step, _ places: [String]) -> String {
    let operation = concourse_exploring_operation_name(UInt32(step.operation)).map { String(cString: $0) }
    return "\(name(step.thread)), \(operation ?? "operation \(step.operation)")"
      + (places.isEmpty ? "" : ": " + places.joined(separator: ", in "))
  }
}
