import ConcourseSchedules
import Glibc
import Synchronization

/// Which exploration of which test.
struct ExplorationPlace: Sendable {
  var fileID: String
  var line: Int
  var column: Int
  /// Of the test, for people.
  var test: String
  /// What makes the test program run this test only.
  var words: [String]
  /// Says for which values of its parameters the test runs, if it has any.
  var arguments: UInt64?
  /// Whether the test runner has threads before the test begins.
  var isEarly = false
  /// Which time the test has come here, from 1 on.
  var arrival = 1

  /// Says in the server's children which exploration begins.
  var name: String { "\(fileID):\(line):\(column)\(suffix)#\(arrival)" }
  /// Of tokens. It has no line, so that tokens survive small changes.
  var identity: UInt16 { Fingerprint("\(fileID) \(test)\(suffix)".utf8).short }

  private var suffix: String { arguments.map { "(\($0))" } ?? "" }
}

/// Runs schedules of a test until one fails.
struct TestExploration {
  let place: ExplorationPlace
  let schedules: Int
  let seed: UInt64

  /// A token of this variable repeats one schedule.
  static let replayVariable = "CONCOURSE_REPLAY"

  /// Decisions after which a run never comes to rest; later runs may make so many times those of the first.
  private static let mostSteps: UInt64 = 2_000_000
  private static let times: UInt64 = 100
  private static let leastSteps: UInt64 = 400_000
  private static let mostTrials = 1_500
  private static let shrinkingSeconds = 5

  /// What to tell of an exploration.
  struct Outcome {
    /// If a schedule has failed.
    var failure: String?
    /// If schedules did not end.
    var warning: String?
  }

  func run() throws -> Outcome {
    if let text = environment(Self.replayVariable), !text.isEmpty {
      let token: ScheduleToken
      do { token = try ScheduleToken(text) } catch { throw ExplorationError(error.reason) }
      guard token.program != place.identity else {
        UnusedToken.noteUse()
        return Outcome(failure: try replay(token))
      }
      UnusedToken.noteForeign()
    }
    guard schedules > 0 else { throw ExplorationError("the number of schedules is \(schedules)") }
    let server = try server()
    var (expectedSteps, endless) = (UInt64(0), 0)
    for number in 0..<schedules {
      let schedule = schedule(number, expectedSteps)
      let result = try server.run(schedule)
      if number == 0 {
        expectedSteps = result.header.steps
        try checkBegin(result)
      }
      switch result.verdict(hasStepLimit: true) {
      case .failed(.stepLimit) where number == 0:
        throw ExplorationError("\(place.test) never comes to rest: it made \(result.header.steps) decisions")
      case .passed: continue
      case .failed(.stepLimit): endless += 1
      case .unusable(let reason): throw ExplorationError("\(place.test) \(reason)")
      case .failed(let failure): return Outcome(failure: told(failure, schedule, result, server))
      }
    }
    guard endless > 0 else { return Outcome() }
    let limit = schedule(1, expectedSteps).stepLimit
    return Outcome(warning: "\(endless) of \(schedules) schedules did not end within \(limit) decisions")
  }

  private func server() throws -> TestServer {
    func start(isEarly: Bool) throws -> TestServer {
      try TestServer(arguments: place.words, name: place.name, isEarly: isEarly)
    }
    guard !place.isEarly else { return try start(isEarly: true) }
    do {
      return try start(isEarly: false)
    } catch is TestServer.NeedsThreads {
      return try start(isEarly: true)
    }
  }

  private func schedule(_ number: Int, _ expectedSteps: UInt64) -> Schedule {
    var schedule = Schedule(seed: seed &* 1_000_000 &+ UInt64(number))
    schedule.number = number
    let all = ExploringStrategy.allCases
    if number > 0 { schedule.strategy = all[number % all.count] }
    schedule.depth = 3
    schedule.expectedSteps = expectedSteps
    let most = Self.mostSteps
    schedule.stepLimit = number == 0 ? most : min(most, max(Self.leastSteps, expectedSteps &* Self.times))
    schedule.endsProcess = true
    return schedule
  }

  /// A run that ends without coming to the exploration says why: the server of one that begins early does not know.
  private func checkBegin(_ result: ScheduleResult) throws {
    guard result.header.began == 0 else { return }
    let output = String(decoding: result.output, as: UTF8.self)
    throw TestServer.NeverArrives(
      reason: ExplorationError("\(place.test) does not come here when it runs alone:\n\(output)"))
  }

  // MARK: A failure

  /// What to tell of a failure that was found, also if a further run goes wrong.
  private func told(
    _ failure: ScheduleFailure, _ schedule: Schedule, _ result: ScheduleResult, _ server: TestServer
  ) -> String {
    do {
      return try shortened(failure, schedule, result, server)
    } catch {
      let lines = ["\(failure.testText) in schedule \(schedule.number + 1), seed \(seed)"]
      return (lines + ExplorationStory.output(result) + ["it was not run again: \(error)"]).joined(
        separator: "\n")
    }
  }

  private func shortened(
    _ failure: ScheduleFailure, _ schedule: Schedule, _ result: ScheduleResult, _ server: TestServer
  ) throws -> String {
    let found = "\(failure.testText) in schedule \(schedule.number + 1), seed \(seed)"
    var schedule = schedule
    schedule.strategy = nil
    schedule.switches = result.made
    schedule.stepLimit = result.header.steps * 10 + 10_000
    let fails = { (result: ScheduleResult) in result.verdict(hasStepLimit: true) == .failed(failure) }
    guard fails(try server.run(schedule)) else {
      return
        ([found] + ExplorationStory.output(result) + [
          "the failure did not repeat with the same switches: the test depends on something that is not controlled"
        ]).joined(separator: "\n")
    }
    var shrinker = Shrinker(
      schedule.switches, threads: Int(result.header.thread_count), most: Self.mostTrials)
    let end = time(nil) + Self.shrinkingSeconds
    var error: (any Error)?
    shrinker.shrink { candidates in
      for (index, switches) in candidates.enumerated() where error == nil && time(nil) < end {
        schedule.switches = switches
        do {
          let result = try server.run(schedule)
          if fails(result) { return (index, result.made) }
        } catch let failure { error = failure }
      }
      return nil
    }
    if let error { throw error }
    schedule.switches = shrinker.switches
    schedule.records = true
    var last = try server.run(schedule)
    if !fails(last) {
      // The shorter list fails only together with what the strategy would have done.
      schedule.switches = result.made
      last = try server.run(schedule)
    }
    let token = ScheduleToken(
      program: place.identity, build: 0, seed: schedule.seed, isRealTime: false, switches: schedule.switches)
    let lines =
      [found] + ExplorationStory.lines(last, of: result.made.count, failure, server.symbols)
      + ["repeat it: \(Self.replayVariable)=\(token.text) swift test --filter \(place.test)"]
    return lines.joined(separator: "\n")
  }

  /// Runs the token's schedule. The test passes if it does not fail.
  private func replay(_ token: ScheduleToken) throws -> String? {
    let server = try server()
    var schedule = Schedule(seed: token.seed)
    schedule.switches = token.switches
    // Of a failure behind a first run that has ended: what waits for a client is stuck.
    schedule.expectedSteps = 1
    schedule.stepLimit = Self.mostSteps
    schedule.endsProcess = true
    schedule.records = true
    let result = try server.run(schedule)
    try checkBegin(result)
    switch result.verdict(hasStepLimit: true) {
    case .passed: return nil
    case .unusable(let reason): throw ExplorationError("\(place.test) \(reason)")
    case .failed(let failure):
      let lines =
        [failure.testText + " in the repeated schedule"]
        + ExplorationStory.lines(result, of: nil, failure, server.symbols)
      return lines.joined(separator: "\n")
    }
  }
}

extension ScheduleFailure {
  /// The process of a schedule ends with status 1 after an issue.
  var testText: String { self == .status(1) ? "the test failed" : text }
}

/// Says at the end of the test process that none of its explorations had the token of the environment: each has then run
/// its usual schedules, and a test that passes has not repeated anything.
private enum UnusedToken {
  enum State {
    case unseen, foreign, used
  }
  static let state = Mutex(State.unseen)

  static func noteUse() { state.withLock { $0 = .used } }

  /// An exploration has come across the token of another one.
  static func noteForeign() {
    let isFirst = state.withLock { state in
      defer { if state == .unseen { state = .foreign } }
      return state == .unseen
    }
    guard isFirst else { return }
    atexit {
      guard UnusedToken.state.withLock({ $0 == .foreign }) else { return }
      let line = Array(
        "\(TestExploration.replayVariable): none of the explorations that ran has this token\n".utf8)
      write(STDERR_FILENO, line, line.count)
    }
  }
}
