import CExploring
import CTracing
import ConcourseSchedules
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
    for limit in [Int(step) - 1, Int(step) - 2, Int(step) / 2] where limit > 0 {
      schedule.stepLimit = UInt64(limit)
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
  static func shown(_ stack: [StackEntry]) -> [String] {
    let clients = stack.filter { $0.origin == .client && !$0.isThunk && !isSanitizers($0) }
    let lines = clients.filter { $0.line != nil }
    let own = lines.filter { !isFromToolchain($0.file ?? "") }
    let known = !own.isEmpty ? own : !lines.isEmpty ? lines : clients
    guard let first = known.first else { return [] }
    let others = known.filter { Wording.place($0) != Wording.place(first) }
    let second = others.first { $0.file != first.file } ?? others.first
    return [Wording.place(first)] + (second.map { [Wording.place($0)] } ?? [])
  }

  /// Whether a line is of a header of the system or of the compiler, whose functions are inlined into the program's.
  private static func isFromToolchain(_ file: String) -> Bool {
    func has(_ part: String) -> Bool {
      file.withCString { file in part.withCString { strstr(file, $0) != nil } }
    }
    return file.hasPrefix("/usr/include/") || has("/include/") && has("/c++/") || has("/lib/clang/")
      || has("/lib/swift/")
  }

  /// Whether the thread sanitizer, which is in the program, has put it around a call.
  private static func isSanitizers(_ entry: StackEntry) -> Bool {
    let starts = ["__tsan", "__interceptor_", "___interceptor_", "__sanitizer"]
    return starts.contains { entry.symbol?.hasPrefix($0) ?? false }
  }

  /// Where the thread is that the end of a run is about.
  static func culprit(of run: ScheduleRun, _ result: ScheduleResult) -> [String] {
    let number = Int(result.header.culprit)
    guard run.isStopped, number < result.threads.count, let places = FailurePlaces(run) else { return [] }
    return places.places([result.threads[number].addresses])[0]
  }

  // MARK: Deadlocks

  /// What `concourse report` says of a process that is stopped.
  struct Waits {
    /// What each thread does, by its number: a predicate.
    var activities: [Int: String] = [:]
    /// Which thread holds which queue or lock, and which thread it waits for.
    var lines: [String] = []
  }

  /// As `concourse_exploring_operations.h` numbers it.
  private static let futexLock: UInt16 = 35

  /// The threads sleep in the library's scheduler: what each waits for is in the table of threads.
  static func waits(of run: ScheduleRun, _ result: ScheduleResult) -> Waits {
    guard var process = try? TargetProcess.live(run.process, stopsThreads: false) else { return Waits() }
    process.isFrozen = true
    // Its clocks are others than this command's.
    process.now = nil
    for thread in result.threads where thread.state == UInt8(CONCOURSE_EXPLORING_WAITING) {
      guard let index = process.threads.firstIndex(where: { $0.id == thread.id }), thread.object != 0 else {
        continue
      }
      let hasDeadline = thread.deadline != .max
      // As a thread waits that finds a mutex locked, if the object is one.
      let (operation, expected): (UInt64, UInt64) =
        thread.operation == Self.futexLock ? (6, 0) : (0, 2)
      process.threads[index].call = (
        process.processor.futex, [thread.object, operation, expected, hasDeadline ? 1 : 0, 0, 0]
      )
    }
    guard let report = try? Report.make(of: process) else { return Waits() }
    var waits = Waits()
    let names = Dictionary(
      result.threads.enumerated().map { ($0.element.id, FailureStory.name(UInt16($0.offset), result)) },
      uniquingKeysWith: { $1 })
    let words = Wording(report.snapshot)
    // Those that spin are in a signal handler.
    for (number, thread) in result.threads.enumerated()
    where thread.state == UInt8(CONCOURSE_EXPLORING_WAITING) {
      guard let info = report.snapshot.thread(thread.id) else { continue }
      if case .call("futex", _) = info.wait { continue }
      waits.activities[number] = named(words.activity(of: info), names)
    }
    for verdict in report.verdicts where verdict.kind != .nothing {
      waits.lines.append(named(verdict.summary, names))
      waits.lines += verdict.details.map { detail in
        "  " + named(detail.text, names) + (detail.place.map { " at " + $0 } ?? "")
      }
    }
    return waits
  }

  /// The text with this command's names of threads for "thread" and the kernel's number.
  static func named(_ text: String, _ names: [UInt32: String]) -> String {
    var words: [String] = []
    for word in text.split(separator: " ", omittingEmptySubsequences: false) {
      let digits = word.prefix { $0.isNumber }
      if words.last == "thread", let number = UInt32(digits), let name = names[number] {
        words[words.count - 1] = name + word.dropFirst(digits.count)
      } else {
        words.append(String(word))
      }
    }
    return words.joined(separator: " ")
  }
}
