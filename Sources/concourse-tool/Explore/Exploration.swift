import CExploring
import ConcourseRecording
import ConcourseSchedules

/// What has been run so far.
struct ExplorationFigures: Equatable {
  var schedules = 0
  var steps: UInt64 = 0
  /// The most of any run.
  var threads: UInt32 = 0
  var mostSteps: UInt64 = 0
  /// Schedules that were run twice, and those that differed.
  var repeated = 0
  var seconds = 0.0
  /// Runs that made so many decisions more than the first that they were ended.
  var unfinished = 0
  /// Bits of CONCOURSE_EXPLORING_LEAK_….
  var leaks: UInt64 = 0
  /// Schedules that failed beside others and passed alone, and the first of them.
  var disturbed = 0
  var firstDisturbed: Int?
}

/// Runs schedule after schedule until one fails.
final class Exploration {
  /// Why the program cannot be explored.
  struct Refusal: Error, Equatable {
    let reason: String
    /// The thread that it is about, and where that was.
    var places: [String] = []
  }

  /// A run that has failed.
  struct Failed {
    let schedule: Schedule
    let failure: ScheduleFailure
    let result: ScheduleResult
  }

  /// A schedule of which two runs differed.
  struct Difference {
    let schedule: Schedule
    /// The two events with the same number that differ first; nil if one run has none with that number.
    var events: (first: concourse_exploring_event?, second: concourse_exploring_event?)?
  }

  private let options: ExploreOptions
  private let runner: ScheduleRunner
  private let begin = UptimeClock.now
  private(set) var figures = ExplorationFigures()
  private(set) var difference: Difference?
  private var expectedSteps: UInt64 = 0
  /// Schedules begun.
  private var started = 0
  /// Those to run a second time, and the hashes of their first runs.
  private var again: [Schedule] = []
  private var hashes: [Int: UInt64] = [:]

  /// Decisions after which a program that is given no limit counts as one that never comes to rest.
  static let defaultStepLimit: UInt64 = 2_000_000

  /// If the first run ends, one that makes so many times its decisions, and at least so many, is ended and counted. It has
  /// not failed: a strategy that is not fair may keep a thread away for ever.
  private static let times: UInt64 = 100
  private static let least: UInt64 = 400_000

  init(_ options: ExploreOptions, _ runner: ScheduleRunner) {
    self.options = options
    self.runner = runner
  }

  private var elapsed: Double { Double(UptimeClock.now - begin) / 1e9 }

  /// - Parameter progress: Is told the figures after each run.
  /// - Returns: The first failure in the order of schedules; nil if none has failed.
  func run(_ progress: (ExplorationFigures) -> Void) throws -> Failed? {
    defer { figures.seconds = elapsed }
    while true {
      let (failures, refusal) = try runUntilFailure(progress)
      for found in failures.sorted(by: { $0.run.schedule.number < $1.run.schedule.number }) {
        if try failsAlone(found.run) {
          if found.hasPassed && difference == nil { difference = Difference(schedule: found.run.schedule) }
          return found.run
        }
        figures.disturbed += 1
        if figures.firstDisturbed == nil { figures.firstDisturbed = found.run.schedule.number }
      }
      if let refusal { throw refusal }
      guard !failures.isEmpty, runner.interruption == nil, wantsMore(started) || !again.isEmpty else {
        return nil
      }
    }
  }

  /// Runs share the machine: a port, or a file outside of the folder that each has. What failed beside others counts if it
  /// fails alone, too. One that may differ from run to run counts at once, since it may pass alone for that reason.
  private func failsAlone(_ failed: Failed) throws -> Bool {
    guard runner.jobs > 1, failed.schedule.number > 0, !options.isRealTime, failed.result.header.leaks == 0,
      let run = try runner.run(failed.schedule)
    else { return true }
    defer { run.end() }
    return run.result.verdict(hasStepLimit: true) != .passed
  }

  /// The failures of the first schedules of which one fails, in no order, and whether each is of a schedule that has passed
  /// before. Then the first that cannot be explored, if there is one.
  private func runUntilFailure(_ progress: (ExplorationFigures) -> Void) throws -> (
    [(run: Failed, hasPassed: Bool)], Refusal?
  ) {
    var failures: [(run: Failed, hasPassed: Bool)] = []
    var refusal: Refusal?
    try runner.run {
      // The first run says how long they are.
      guard failures.isEmpty, self.started != 1 || self.figures.schedules == 1 else { return nil }
      if let schedule = self.again.popLast() { return schedule }
      guard self.wantsMore(self.started) else { return nil }
      self.started += 1
      return self.schedule(self.started - 1)
    } _: { run in
      let result = run.result
      let number = run.schedule.number
      if let hash = self.hashes[number] {
        self.figures.repeated += 1
        let verdict = result.verdict(hasStepLimit: true)
        if case .failed(let failure) = verdict, failure != .stepLimit || self.options.steps != nil {
          failures.append((Failed(schedule: run.schedule, failure: failure, result: result), true))
        } else if self.difference == nil, hash != result.header.hash || verdict != .passed {
          self.difference = Difference(schedule: run.schedule)
        }
        run.end()
        return true
      }
      self.note(result)
      switch result.verdict(hasStepLimit: self.options.steps != nil || number > 0) {
      case .passed:
        if number % 10 == 9 {
          self.hashes[number] = result.header.hash
          self.again.append(run.schedule)
        }
      case .failed(.stepLimit) where self.options.steps == nil: self.figures.unfinished += 1
      // Others with smaller numbers still run: which is found must not depend on the time that each takes.
      case .failed(let failure):
        failures.append((Failed(schedule: run.schedule, failure: failure, result: result), false))
      case .unusable(let reason):
        refusal = Refusal(reason: reason, places: FailurePlaces.culprit(of: run, result))
      }
      run.end()
      progress(self.figures)
      return refusal == nil
    }
    return (failures, refusal)
  }

  private func wantsMore(_ started: Int) -> Bool {
    if let seconds = options.seconds { return started == 0 || elapsed < seconds }
    return started < options.schedules ?? ExploreOptions.defaultSchedules
  }

  private func note(_ result: ScheduleResult) {
    figures.schedules += 1
    figures.steps += result.header.steps
    figures.leaks |= result.header.leaks
    figures.threads = max(figures.threads, result.header.thread_count)
    figures.mostSteps = max(figures.mostSteps, result.header.steps)
    if expectedSteps == 0 { expectedSteps = result.header.steps }
    figures.seconds = elapsed
  }

  /// The first schedule has no switches.
  func schedule(_ number: Int) -> Schedule {
    var schedule = Schedule(seed: options.seed &* 1_000_000 &+ UInt64(number))
    schedule.number = number
    let all = ExploringStrategy.allCases
    if number > 0 { schedule.strategy = options.strategy ?? all[number % all.count] }
    schedule.depth = options.depth
    schedule.expectedSteps = expectedSteps
    let most = Self.defaultStepLimit
    schedule.stepLimit =
      options.steps ?? (number == 0 ? most : min(most, max(Self.least, expectedSteps &* Self.times)))
    schedule.isRealTime = options.isRealTime
    return schedule
  }

  // MARK: More of the same

  /// Schedules that are run after the first failure.
  private static let further = 200
  private static let fewest = 4

  /// Further runs that fail in the same way, those with the fewest switches first. The first failure may have made a
  /// detour of which shrinking does not find a way out.
  func others(like failed: Failed) throws(ScheduleRun.Failure) -> [Failed] {
    var found: [Failed] = []
    var next = failed.schedule.number + 1
    let end = next + Self.further
    try runner.run {
      guard next < end else { return nil }
      next += 1
      return self.schedule(next - 1)
    } _: { run in
      let result = run.result
      run.end()
      if result.verdict(hasStepLimit: true) == .failed(failed.failure) {
        found.append(Failed(schedule: run.schedule, failure: failed.failure, result: result))
      }
      return true
    }
    found.sort {
      ($0.result.header.made_count, $0.schedule.number) < ($1.result.header.made_count, $1.schedule.number)
    }
    return Array(found.prefix(Self.fewest))
  }

  // MARK: What differs

  /// Finds the first event that differs between two runs of the schedule that did. Chance decides whether they do again,
  /// so it tries some times.
  func locateDifference() throws(ScheduleRun.Failure) {
    guard var found = difference else { return }
    var schedule = found.schedule
    schedule.records = true
    guard let first = try runner.run(schedule)?.result else { return }
    for _ in 0..<10 {
      guard let second = try runner.run(schedule)?.result else { return }
      if let events = Self.firstDifference(first.events, second.events), first.firstEvent == 0 {
        found.events = events
        difference = found
        return
      }
    }
  }

  static func firstDifference(
    _ first: [concourse_exploring_event], _ second: [concourse_exploring_event]
  ) -> (first: concourse_exploring_event?, second: concourse_exploring_event?)? {
    for index in 0..<max(first.count, second.count) {
      let left = index < first.count ? first[index] : nil
      let right = index < second.count ? second[index] : nil
      guard let left, let right, left.thread == right.thread, left.operation == right.operation,
        left.next == right.next, left.time == right.time, left.choices == right.choices
      else { return (left, right) }
    }
    return nil
  }
}
