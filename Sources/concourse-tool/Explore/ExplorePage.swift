import CExploring
import ConcourseRecording
import ConcourseSchedules

/// The page of `concourse trace` for a run that failed: what each thread was in, and where threads were switched.
///
/// Time on it is not the program's: a microsecond is a decision. A thread runs from the decision that lets it go on to its
/// next one. Otherwise it is blocked, or waits for its turn; where the schedule has stopped it, that is said.
struct ExplorePage {
  private static let decision: UInt64 = 1000
  /// The last decisions are shown. A browser has no trouble with so many.
  private static let most = 5000
  private static let queue: UInt64 = 1
  /// Above the numbers of the engine's waits.
  private static let firstWait: UInt64 = 1000

  private var recorded: [RecordedEvent] = []
  private var functions: [String] = ["begins"]
  private var waitNames: [String] = []
  /// What each thread is about to do, in `functions`.
  private var pending: [UInt16: Int] = [:]
  /// What the threads that run do.
  private var open: [UInt16: Int] = [:]
  private var isWaiting: Set<UInt16> = []
  private let result: ScheduleResult

  /// - Parameters:
  ///   - places: Of the events of the result.
  ///   - lines: What the page says at its top, with titles.
  static func write(
    _ program: String, _ result: ScheduleResult, _ places: [[String]], reason: String,
    lines: [(String, String)]
  ) -> [UInt8] {
    let page = ExplorePage(result, places)
    let first = max(0, result.events.count - most)
    // The page adds the numbers.
    let threads = Set(result.events[first...].map(\.thread)).map { number in
      (
        UInt32(number),
        FailureStory.name(number, result).split(separator: " ").filter { UInt16($0) == nil }.joined(
          separator: " ")
      )
    }
    let recording = RecordedRun(
      events: page.recorded, threads: Dictionary(threads) { $1 },
      queue: queue, label: "the order of all threads", program: program)
    return TracePage.write(
      recording,
      TracePage.Telling(
        reason: reason,
        verdict: lines + [("Time", "a microsecond on this page is a decision")],
        waitName: { page.waitNames[Int($0.kind - firstWait)] })
    ) { page.functions[Int($0)] }
  }

  private init(_ result: ScheduleResult, _ places: [[String]]) {
    self.result = result
    let first = max(0, result.events.count - Self.most)
    for (index, event) in result.events.enumerated().dropFirst(first) {
      add(event, places[index], at: UInt64(index + 1) * Self.decision)
    }
    let end = UInt64(result.events.count + 1) * Self.decision
    for thread in open.keys.sorted() { stop(thread, at: end) }
  }

  private mutating func add(_ event: concourse_exploring_event, _ places: [String], at time: UInt64) {
    stop(event.thread, at: time)
    let operation = FailureStory.operation(event.operation)
    functions.append(places.isEmpty ? operation : "\(operation): \(places.joined(separator: ", in "))")
    pending[event.thread] = functions.count - 1
    if event.next == event.thread {
      run(event.thread, at: time)
      return
    }
    // When time is advanced, the thread decides again.
    guard event.next != ScheduleSwitch.time else { return }
    let next = FailureStory.name(event.next, result)
    if event.flags & UInt8(CONCOURSE_EXPLORING_SWITCHED) != 0 {
      wait(event.thread, "SWITCH: stopped before \(operation), \(next) runs instead", at: time)
    } else if event.flags & UInt8(CONCOURSE_EXPLORING_BLOCKS) != 0 {
      wait(event.thread, "blocked in \(operation)", at: time)
    } else if event.operation != Self.threadEnds {
      wait(event.thread, "waits for its turn", at: time)
    }
    run(event.next, at: time)
  }

  /// Of the operations.
  private static let threadEnds: UInt16 = 2

  private mutating func record(
    _ kind: RecordedEvent.Kind, _ thread: UInt16, _ time: UInt64, node: UInt64 = 0, function: Int = 0
  ) {
    recorded.append(
      RecordedEvent(
        time: time, thread: UInt32(thread), kind: kind, node: node, object: Self.queue,
        function: UInt64(function)))
  }

  private mutating func run(_ thread: UInt16, at time: UInt64) {
    if isWaiting.remove(thread) != nil { record(.waitEnded, thread, time) }
    let function = pending[thread] ?? 0
    open[thread] = function
    record(.started, thread, time, function: function)
  }

  private mutating func stop(_ thread: UInt16, at time: UInt64) {
    guard let function = open.removeValue(forKey: thread) else { return }
    record(.ended, thread, time, function: function)
  }

  private mutating func wait(_ thread: UInt16, _ name: String, at time: UInt64) {
    guard isWaiting.insert(thread).inserted else { return }
    let number = waitNames.firstIndex(of: name) ?? waitNames.count
    if number == waitNames.count { waitNames.append(name) }
    record(.waitBegan, thread, time, node: Self.firstWait + UInt64(number))
  }
}
