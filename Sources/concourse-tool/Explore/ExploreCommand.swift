import CExploring
import CTracing
import ConcourseRecording
import ConcourseSchedules
import Glibc

/// `concourse explore`: runs a program in many orders of its threads, and explains the first that fails.
enum ExploreCommand: Command {
  static let summary = "runs a program in many orders of its threads until one fails, and repeats that"

  enum Status {
    static let found: Int32 = 1
    static let interrupted: Int32 = 130
  }

  static func run(_ options: ExploreOptions, _ arguments: [String]) -> Int32 {
    // The reader of the output may end first. The command must still end its runs.
    signal(SIGPIPE, SIG_IGN)
    do {
      if let path = options.output { try TraceCommand.check(path) }
      let program = try prepare(options)
      try ExploredInput.prepare()
      let identity = ProgramIdentity(program.path)
      let jobs = options.jobs ?? max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
      let runner = ScheduleRunner(program, jobs: jobs, adopts: true)
      defer { runner.endOrphans() }
      runner.takeSignals()
      if let text = options.replay {
        return try replay(text, options, arguments, identity, runner)
      }
      return try explore(options, arguments, identity, runner)
    } catch let refusal as Exploration.Refusal {
      Terminal.printError("\(arguments[options.target]) \(refusal.reason)")
      for place in refusal.places { Terminal.printError("  at \(place)") }
    } catch let failure as ScheduleRun.Failure {
      Terminal.printError(failure.reason)
    } catch let failure as RecordingFailure {
      Terminal.printError(failure.reason)
    } catch let failure as RuntimeLibrary.Failure {
      Terminal.printError(failure.reason)
    } catch let failure as ScheduleToken.Failure {
      Terminal.printError(failure.reason)
    } catch {
      Terminal.printError("\(error)")
    }
    return RunCommand.Status.failure
  }

  // MARK: The two ways to run it

  /// More switches than that are hard to follow.
  private static let enough = 3
  /// For each further failure.
  private static let fewerTrials = 400

  private static func explore(
    _ options: ExploreOptions, _ arguments: [String], _ identity: ProgramIdentity, _ runner: ScheduleRunner
  ) throws -> Int32 {
    let exploration = Exploration(options, runner)
    let progress = ExploreProgress()
    let failed = try exploration.run { progress.show($0) }
    progress.end()
    let figures = exploration.figures
    if let line = ExploreText.disturbedLine(figures) { Terminal.printError(line) }
    if exploration.difference != nil {
      try exploration.locateDifference()
      if let difference = exploration.difference {
        for line in ExploreText.leaks(difference, figures.leaks, differing(difference, runner)) {
          Terminal.printError(line)
        }
      }
    }
    if options.strategy == .pct { Terminal.printError(ExploreText.boundLine(figures, depth: options.depth)) }
    guard let failed else {
      let interruption = runner.interruption
      if figures.steps == 0 && figures.schedules > 0 {
        Terminal.printError(
          "the program came to no operation at which threads could change: nothing of it was explored")
      }
      Terminal.printLine(
        "\(interruption == nil ? "" : "interrupted: ")nothing found: \(ExploreText.figures(figures, options))"
      )
      return interruption == nil ? 0 : Status.interrupted
    }
    Terminal.printLine(
      "found in schedule \(failed.schedule.number + 1): \(ExploreText.figures(figures, options))")
    var found = try FoundFailure(failed, shrinks: options.shrinks, runner)
    if options.shrinks, !found.isInterrupted, found.schedule.switches.count > enough || !found.repeats {
      for other in try exploration.others(like: failed) {
        let second = try FoundFailure(other, shrinks: true, trials: fewerTrials, runner)
        if second.repeats, !second.isInterrupted,
          !found.repeats || second.schedule.switches.count < found.schedule.switches.count
        {
          found = second
        }
        if found.repeats && found.schedule.switches.count <= enough { break }
      }
    }
    let token = ScheduleToken(
      program: identity.name, build: identity.build, seed: found.schedule.seed,
      isRealTime: options.isRealTime, switches: found.schedule.switches)
    try tell(found, token, options, arguments[options.target...], runner)
    return Status.found
  }

  private static func replay(
    _ text: String, _ options: ExploreOptions, _ arguments: [String], _ identity: ProgramIdentity,
    _ runner: ScheduleRunner
  ) throws -> Int32 {
    let token = try ScheduleToken(try Self.token(in: text))
    guard token.program == identity.name else {
      throw ScheduleToken.Failure(
        reason: ExploreText.foreign(token, than: FilePath.lastPart(of: identity.path)))
    }
    if token.build != identity.build {
      Terminal.printError("the token is of another build of this program; its switches may not fit")
    }
    var schedule = Schedule(seed: token.seed)
    schedule.isRealTime = token.isRealTime
    schedule.switches = token.switches
    // Of a failure behind a first run that has ended: what waits for a client is stuck.
    schedule.expectedSteps = 1
    schedule.records = true
    schedule.stepLimit = options.steps ?? Exploration.defaultStepLimit
    guard let run = try runner.run(schedule) else { return Status.interrupted }
    let result = run.result
    let left = token.switches.count - Int(min(result.header.followed_count, UInt64(token.switches.count)))
    if left > 0 {
      Terminal.printError(
        "\(left) of \(ExploreText.count(token.switches.count, "switch", "switches")) could not "
          + "be followed")
    }
    switch result.verdict(hasStepLimit: true) {
    case .passed:
      for line in ExploreText.output(result.output) { Terminal.printLine("  | " + line) }
      Terminal.printLine("the schedule does not fail")
      return 0
    case .failed(let failure):
      try tell(FoundFailure(schedule, failure, result), nil, options, arguments[options.target...], runner)
      return Status.found
    case .unusable(let reason):
      throw Exploration.Refusal(reason: reason, places: FailurePlaces.culprit(of: run, result))
    }
  }

  /// The token that was given, or that begins a file.
  private static func token(in text: String) throws -> String {
    guard let file = FileBytes(path: text), let bytes = file.read(at: 0, count: Int(min(file.size, 1 << 24)))
    else {
      if ScheduleToken.canBeToken(text) { return text }
      let error = access(text, R_OK) == 0 ? nil : errno
      throw ScheduleToken.Failure(
        reason: "\(text) is no token, and no file that can be read"
          + (error.map { ": \(describe(error: $0))" } ?? ""))
    }
    return String(decoding: bytes.prefix { $0 > 32 }, as: UTF8.self)
  }

  // MARK: What was found

  /// Prints what has happened, and writes the page.
  /// - Parameter token: Repeats it; nil if it is being repeated.
  private static func tell(
    _ found: FoundFailure, _ token: ScheduleToken?, _ options: ExploreOptions, _ words: ArraySlice<String>,
    _ runner: ScheduleRunner
  ) throws {
    var story: FailureStory?
    var places: FailurePlaces?
    if found.repeats && !found.isInterrupted {
      let stays = [.deadlock, .hang, .stepLimit, .race].contains(found.failure)
      let run =
        stays
        ? try runner.run(found.schedule)
        : FailurePlaces.stopped(found.schedule, before: found.result.header.steps, runner)
      places = run.flatMap { FailurePlaces($0) }
      story = FailureStory(found.result, found.failure) { points in
        places?.places(points, found.schedule, runner) ?? points.map { _ in [] }
      }
      if found.failure == .race, let run, let places {
        story?.accesses = FailureStory.accesses(of: run.result) { places.places($0) }
      } else if stays, let run {
        story?.add(FailurePlaces.waits(of: run, run.result))
      }
    }
    var lines = ExploreText.failure(found, story)
    if found.repeats, let token { lines.append(repetition(token, options)) }
    for line in lines { Terminal.printLine(line) }
    guard let path = options.output, story != nil else { return }
    let stacks = found.result.events.map(\.addresses)
    let page = ExplorePage.write(
      FilePath.lastPart(of: words.first ?? ""), found.result,
      places?.places(stacks) ?? stacks.map { _ in [] },
      reason: found.failure.text,
      lines: story.map { ExploreText.pageLines($0) } ?? [])
    do throws(OutputFile.Failure) { try OutputFile(named: path).write(page) } catch {
      Terminal.printError("\(error.path) cannot be written: \(error.reason)")
    }
  }

  /// A longer token is only in a file.
  private static let longest = 100

  /// How to repeat a schedule.
  private static func repetition(_ token: ScheduleToken, _ options: ExploreOptions) -> String {
    var text = token.text
    if text.utf8.count > longest {
      do throws(OutputFile.Failure) {
        let file = try OutputFile(free: "concourse-explore", ".token")
        try file.write(Array((text + "\n").utf8))
        text = file.path
      } catch { Terminal.printError("\(error.path) cannot be written: \(error.reason)") }
    }
    // Its words are quoted such that a terminal shows them, so nothing has to be cleaned.
    return ExploreText.repetition(text, commandLine(from: options.target), options)
  }

  private static func differing(_ difference: Exploration.Difference, _ runner: ScheduleRunner) -> (
    String?, String?
  ) {
    guard let events = difference.events else { return (nil, nil) }
    let run = FailurePlaces.stopped(difference.schedule, before: 2, runner)
    let places = run.flatMap { FailurePlaces($0) }
    func text(_ event: concourse_exploring_event?) -> String? {
      event.map { event in
        let found = places?.places([event.addresses])[0] ?? []
        return "thread \(event.thread), \(FailureStory.operation(event.operation))"
          + (found.isEmpty ? "" : ": " + found.joined(separator: ", in "))
      }
    }
    return (text(events.first), text(events.second))
  }
}

/// A line on a terminal that says how far the command is.
final class ExploreProgress {
  private let isShown = isatty(STDERR_FILENO) != 0
  private var last: UInt64 = 0

  func show(_ figures: ExplorationFigures) {
    guard isShown, UptimeClock.now - last > 200_000_000 else { return }
    last = UptimeClock.now
    Terminal.printError("\r\(ExploreText.count(figures.schedules, "schedule")) ", asIs: true)
  }

  func end() {
    if isShown && last != 0 { Terminal.printError("\r\u{1B}[K", asIs: true) }
  }
}
