import CExploring
import CTracing
import Glibc

/// Names the functions, files and lines of a run's addresses.
///
/// The process must exist for that. A run that ended by itself is made once more, and stopped at its last decision: its
/// memory has the same addresses.
struct FailurePlaces {
  private let run: ScheduleRun
  private let process: TargetProcess
  private let symbols: Symbols

  init?(_ run: ScheduleRun) {
    guard let process = try? TargetProcess.live(run.process, stopsThreads: false),
      case let images = MappedImage.all(of: process),
      let record = try? InspectionRecord.find(in: process, images)
    else { return nil }
    self.run = run
    self.process = process
    symbols = Symbols(process, images, engine: record.image)
  }

  /// A process that is stopped before a decision of the schedule, or before the last one if it has fewer.
  static func stopped(_ schedule: Schedule, before step: UInt64, _ runner: ScheduleRunner) -> ScheduleRun? {
    var schedule = schedule
    // The limit is the number of decisions that are made.
    for limit in [step - 1, step - 2, step / 2] where step > limit && limit > 0 {
      schedule.stepLimit = limit
      if let run = try? runner.run(schedule), run.isStopped { return run }
    }
    return nil
  }

  /// The places of points in runs of a schedule. Where code without frame pointers has hidden them from the library, the
  /// schedule is run again up to that point, and the stack is searched.
  func places(_ points: [FailureStory.Point], _ schedule: Schedule, _ runner: ScheduleRunner) -> [[String]] {
    var found = places(points.map(\.addresses))
    for (index, point) in points.enumerated() where found[index].isEmpty {
      if let step = point.step {
        guard step > 1, let run = Self.stopped(schedule, before: step, runner),
          run.result.header.steps == step
        else {
          continue
        }
        found[index] = FailurePlaces(run)?.place(of: point.thread, run.result) ?? []
      } else {
        found[index] = place(of: point.thread, run.result)
      }
    }
    return found
  }

  private func place(of thread: UInt16, _ result: ScheduleResult) -> [String] {
    guard Int(thread) < result.threads.count,
      let thread = process.threads.first(where: { $0.id == result.threads[Int(thread)].id })
    else { return [] }
    let stack = StackWalk.addresses(of: thread, in: process, function: symbols.function(at:))
    return Self.shown(symbols.resolve([stack])[0])
  }

  /// For each list of return addresses, its places in the program, the innermost first: at most two.
  func places(_ stacks: [[UInt64]]) -> [[String]] {
    // Return addresses: the call is before them.
    symbols.resolve(stacks.map { $0.enumerated().map { $0.offset == 0 ? $0.element &- 1 : $0.element } }).map(
      Self.shown)
  }

  /// The innermost place in the program, and that of its caller: preferably one in another file, since the innermost is
  /// often a helper.
  private static func shown(_ stack: [StackEntry]) -> [String] {
    let clients = stack.filter { $0.origin == .client && !$0.isThunk }
    let known = clients.contains { $0.line != nil } ? clients.filter { $0.line != nil } : clients
    guard let first = known.first else { return [] }
    let others = known.filter { Wording.place($0) != Wording.place(first) }
    let second = others.first { $0.file != first.file } ?? others.first
    return [Wording.place(first)] + (second.map { [Wording.place($0)] } ?? [])
  }

  /// Where the thread is that the end of a run is about.
  static func culprit(of run: ScheduleRun, _ result: ScheduleResult) -> [String] {
    let number = Int(result.header.culprit)
    guard run.isStopped, number < result.threads.count, let places = FailurePlaces(run) else { return [] }
    return places.places([result.threads[number].addresses])[0]
  }

  // MARK: Deadlocks

  /// Who waits for whom, as `concourse report` says it. The threads sleep in the library's scheduler: what each waits for
  /// is in the table of threads.
  static func report(of run: ScheduleRun, _ result: ScheduleResult) -> String? {
    guard var process = try? TargetProcess.live(run.process, stopsThreads: false) else { return nil }
    process.isFrozen = true
    // Its clocks are others than this command's.
    process.now = nil
    for thread in result.threads where thread.state == UInt8(CONCOURSE_EXPLORING_WAITING) {
      guard let index = process.threads.firstIndex(where: { $0.id == thread.id }), thread.object != 0 else {
        continue
      }
      let hasDeadline = thread.deadline != .max
      process.threads[index].call = (
        SystemCallNames.futex, [thread.object, 0, 0, hasDeadline ? 1 : 0, 0, 0]
      )
    }
    guard let report = try? Report.make(of: process) else { return nil }
    let deadlocks = report.verdicts.filter { $0.kind != .nothing && $0.kind != .heldQueue }
    guard !deadlocks.isEmpty else { return nil }
    return deadlocks.map { verdict in
      ([verdict.summary]
        + verdict.details.map { detail in "  - " + detail.text + (detail.place.map { " at " + $0 } ?? "") })
        .joined(separator: "\n")
    }.joined(separator: "\n")
  }
}
