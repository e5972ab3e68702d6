import ConcourseRecording
import Glibc

/// Watches a process: its recording for rates and times, its memory for the rest.
final class TopWatch {
  /// Parts of an interval after which the events so far are counted, so that they do not pile up.
  private static let nanosecondsBetweenParts: UInt64 = 100_000_000
  /// A look at the memory may take this part of the time.
  private static let snapshotShare: UInt64 = 5

  let process: Int32
  let program: String
  private let live: LiveRecording
  private var statistics: EventStatistics
  private var lastPart: UInt64
  private var lastPoll: UInt64
  private var record: InspectionRecord?
  private var snapshot: EngineSnapshot?
  private var alarm: String?
  /// An earlier look: what is the same since then is an alarm.
  private var standstill: Standstill?
  /// Whether items have started in the last interval.
  private var hasStarted = true
  private var nextSnapshot: UInt64 = 0
  private var history: [UInt64: [Double]] = [:]
  private var functions: FunctionNames?
  private let tasks = TaskWatch()

  init(_ process: Int32) throws(RecordingFailure) {
    live = try LiveRecording(process)
    (self.process, program) = (process, live.name)
    lastPoll = UptimeClock.now
    lastPart = lastPoll
    statistics = EventStatistics(start: lastPoll)
    // What is wrong with another version is said before anything is shown.
    try look()
    _ = try live.poll()
  }

  /// So that no ring is full before it is read.
  private(set) var microsecondsToNextPoll: UInt32 = 5000

  /// Reads new events.
  /// - Returns: false if the process has ended.
  func poll() throws(RecordingFailure) -> Bool {
    lastPoll = UptimeClock.now
    guard try live.poll() else { return false }
    let fill = live.reader?.fill ?? 0
    let factor = fill > 0.1 ? 0.2 / fill : 2
    microsecondsToNextPoll = UInt32(min(max(Double(microsecondsToNextPoll) * factor, 1000), 50_000))
    if lastPoll > lastPart + Self.nanosecondsBetweenParts { takePart() }
    return true
  }

  private func takePart() {
    lastPart = lastPoll
    guard let reader = live.reader else { return }
    var recording = reader.take()
    if functions == nil || functions!.count != recording.modules.count {
      functions = FunctionNames(recording)
    }
    functions!.tasks = recording.tasks
    functions!.nameQueues(&recording)
    statistics.add(recording, before: lastPoll)
  }

  /// Ends an interval.
  ///
  /// - Parameter waits: Whether to wait, as long as it is true, until the tasks that are being read have been read.
  func frame(waitingForTasks waits: () -> Bool = { false }) -> TopFrame {
    takePart()
    let interval = statistics.finish(at: lastPoll)
    // The process may have ended, or changed into another program.
    hasStarted = interval.queues.values.contains { $0.started > 0 }
    if UptimeClock.now >= nextSnapshot { try? look() }
    var frame = TopFrame(
      process: process, program: program, interval: interval, names: statistics.names, snapshot: snapshot,
      earlier: history)
    history = frame.history
    tasks.wait(while: waits)
    frame.tasks = tasks.shown
    // The tasks may have been read before the items started.
    frame.alarm = alarm ?? frame.tasks?.deadlock ?? (hasStarted ? nil : frame.tasks?.stall)
    frame.wall = WallClock.now
    frame.clock = Self.clock()
    return frame
  }

  func name(of code: UInt64) -> String { functions?.name(of: code) ?? "0x" + String(code, radix: 16) }

  private func look() throws(RecordingFailure) {
    let began = UptimeClock.now
    do throws(TargetProcess.Failure) {
      let target = try TargetProcess.live(process, stopsThreads: false)
      let record: InspectionRecord
      if let known = self.record {
        record = known
      } else {
        record = try InspectionRecord.find(in: target, MappedImage.all(of: target))
      }
      // Until the process uses the runtime, the record is empty.
      if record.roots != 0 { self.record = record }
      let snapshot = try EngineReader.read(target, record, taskClass: tasks.taskClass(in: target))
      self.snapshot = snapshot
      tasks.start(snapshot, record)
      // The report's own watch would take up to a second, in which the rings are not read.
      let earlier = standstill ?? Standstill(snapshot)
      let verdicts = Verdicts(snapshot, WaitGraph(snapshot), since: earlier)
      if verdicts.look.time >= earlier.time + HoldWatch.least || standstill == nil {
        standstill = verdicts.look
      }
      alarm =
        verdicts.all.first { verdict in
          switch verdict.kind {
          case .deadlock, .suspendedQueue, .inactiveQueue: true
          // A pool that starts items is not starved, however many threads wait.
          case .starvedPool: !hasStarted
          default: false
          }
        }?.summary
    } catch {
      snapshot = nil
      alarm = nil
      standstill = nil
      throw RecordingFailure(error.reason)
    }
    let end = UptimeClock.now
    nextSnapshot = end + (end - began) * (Self.snapshotShare - 1)
  }

  private static func clock() -> String {
    var now = time(nil)
    var parts = tm()
    localtime_r(&now, &parts)
    func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
    return "\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec))"
  }
}
