internal import CModelContext
internal import Glibc

/// Explores the interleavings of a scenario.
///
/// A scenario is a closure that runs once per execution. It builds fresh state, adds threads with `Model.thread`, runs
/// them with `Model.run()`, and checks the outcome. It must be deterministic apart from the schedule.
///
///     let result = Model.explore("two pushes", bound: 2) {
///       let list = WorkList()
///       Model.thread("left") { … }
///       Model.thread("right") { … }
///       Model.run()
///       Model.check(list.isEmpty, "an entry was left")
///     }
///     #expect(result.failure == nil && result.isComplete, "\(result)")
///
/// The model sees every operation of `Atomic`, `Futex`, `Processor`, `SystemThread` and `Model.Cell`. It does not see
/// plain memory (use `Model.Cell` and `Model.Log`) and the order of reference counting (which thread runs a `deinit`).
///
/// Each operation of an `Atomic` reads or follows the newest store, or any other that C11 allows (`Location`). An
/// execution that does not is *stale*; the search has a bound for both, preemptions and stale operations.
enum Model {
  /// Resets the engine before each execution, outside the model's threads.
  // SAFETY: a test sets it before it explores; it is read only under `lock`.
  nonisolated(unsafe) static var resetHook: (() -> Void)?

  /// Files (as in `#fileID`) whose atomics belong to one thread at a time.
  static let privateFiles: [StaticString] = [
    "ConcourseModel/NodeMagazine.swift", "ConcourseModel/NodeSlab.swift",
  ]

  /// The model's state is global, so a process runs one exploration at a time.
  private static let lock = Mutex(())

  /// The most executions of an exploration, if CONCOURSE_MODEL_LIMIT says so. One that ends there counts as complete.
  private static let limit = getenv("CONCOURSE_MODEL_LIMIT").flatMap { Int(String(cString: $0)) } ?? .max

  private static let defaultStale = getenv("CONCOURSE_MODEL_STALE").flatMap { Int(String(cString: $0)) } ?? 1

  /// Whether each exploration prints its size: CONCOURSE_MODEL_REPORT.
  private static let isReporting = getenv("CONCOURSE_MODEL_REPORT") != nil

  // MARK: - Exploring

  /// Visits every schedule of `scenario` with at most `bound` preemptions and `stale` stale operations, or finds one
  /// that fails.
  ///
  /// - Parameters:
  ///   - bound: The number of preemptions in one execution.
  ///   - stale: The number of operations in one execution that use another store than the newest, by default 1, or
  ///     what CONCOURSE_MODEL_STALE says.
  ///   - maxExecutions: The limit after which the search stops; the result is then incomplete.
  ///   - allowTime: Whether timeouts may end waits once no thread can continue.
  ///   - reduce: Whether known states are not explored again.
  ///   - stepLimit: The steps after which an execution counts as endless.
  ///   - expectedTrap: A part of the message of the trap that must end every execution.
  static func explore(
    _ name: String, bound: Int = 2, stale: Int = defaultStale, maxExecutions: Int = 100_000,
    allowTime: Bool = false,
    reduce: Bool = true, stepLimit: Int = 20_000, expectedTrap: String? = nil,
    _ scenario: @escaping () -> Void
  ) -> ModelResult {
    exclusively {
      let settings = Settings(stepLimit: stepLimit, allowsTime: allowTime, expectedTrap: expectedTrap)
      warmUp(settings, scenario)
      let start = ContinuousClock.now
      var result = search(name, bound, stale, maxExecutions, reduce, settings, scenario)
      if isReporting { print("\(result.summary), \(ContinuousClock.now - start)") }
      // A mutant is dead or alive; why matters only to a reader.
      guard result.failure != nil && Mutation.current == nil else { return result }
      // A failure with fewer stale operations and preemptions is easier to read.
      simplify: for fewerStale in 0...stale {
        for fewer in 0...bound where (fewerStale, fewer) != (stale, bound) {
          let simpler = search(name, fewer, fewerStale, maxExecutions, reduce, settings, scenario)
          guard let failure = simpler.failure else { continue }
          result.failure = failure
          break simplify
        }
      }
      result.failure = traced(result.failure!, settings, scenario)
      return result
    }
  }

  /// Runs `scenario` under random schedules. The result includes the seed, which repeats them.
  /// - Parameter preemptions: How often a running thread drops to the lowest priority, per execution.
  /// - Parameter stale: How often an operation uses another store than the newest, per execution.
  static func random(
    _ name: String, seed: UInt64 = .random(in: 0...UInt64.max), runs: Int, preemptions: Int = 3,
    stale: Int = 2,
    allowTime: Bool = false, stepLimit: Int = 20_000, expectedTrap: String? = nil,
    _ scenario: @escaping () -> Void
  ) -> ModelResult {
    exclusively {
      let settings = Settings(stepLimit: stepLimit, allowsTime: allowTime, expectedTrap: expectedTrap)
      var result = ModelResult(name: name, seed: seed)
      var seeds = SplitMix(state: seed)
      var length = warmUp(settings, scenario)
      for _ in 0..<runs {
        let policy = RandomPriorities(seed: seeds.next(), drops: preemptions, stale: stale, length: length)
        let run = settings.run(policy, scenario)
        result.executions += 1
        result.steps += run.steps
        length = max(length, run.decisions)
        if let failure = run.failure {
          result.failure = traced(failure, settings, scenario)
          break
        }
      }
      return result
    }
  }

  /// Runs `scenario` once; its threads make one step each in turn. For properties that must hold even if no thread is
  /// slower than the others.
  static func roundRobin(
    _ name: String, stepLimit: Int = 20_000, _ scenario: @escaping () -> Void
  ) -> ModelResult {
    exclusively {
      let settings = Settings(stepLimit: stepLimit, allowsTime: false)
      warmUp(settings, scenario)
      let run = settings.run(RoundRobin(), isTracing: false, scenario)
      return ModelResult(
        name: name, executions: 1, steps: run.steps, isComplete: true, failure: run.failure)
    }
  }

  /// Repeats one execution, step by step.
  /// - Returns: Its failure with the trace of all steps, or nil if it does not fail.
  static func replay(
    _ schedule: ModelSchedule, allowTime: Bool = false, stepLimit: Int = 20_000,
    _ scenario: @escaping () -> Void
  ) -> ModelFailure? {
    exclusively {
      let settings = Settings(stepLimit: stepLimit, allowsTime: allowTime)
      warmUp(settings, scenario)
      return settings.run(Replay(schedule), isTracing: true, scenario).failure
    }
  }

  // MARK: - In a scenario

  /// Adds a thread that starts in `run()` and must end.
  static func thread(_ name: String, _ body: @escaping () -> Void) {
    scheduler.spawn(name, isBackground: false, body)
  }

  /// Adds a thread that may sleep forever, like a worker of the pool.
  static func background(_ name: String, _ body: @escaping () -> Void) {
    scheduler.spawn(name, isBackground: true, body)
  }

  /// Runs the threads until all have ended and no background thread can continue.
  static func run() { scheduler.join() }

  /// Fails the execution unless `condition` holds.
  static func check(
    _ condition: Bool, _ message: @autoclosure () -> String, file: StaticString = #fileID, line: UInt = #line
  ) {
    if !condition { scheduler.fail(.check, "\(message()) (\(file):\(line))") }
  }

  /// Sets the number of processors. Call it before the engine starts workers.
  static func setProcessors(_ count: Int) {
    Processor.affinityCount = count
    _ = PoolSize.refreshWidth()
  }

  /// Lets virtual time pass. Only in scenarios with `allowTime`.
  static func sleep(nanoseconds: UInt64) {
    let scheduler = scheduler
    _ = scheduler.sleep(on: 0, until: scheduler.elapsed + nanoseconds)
  }

  private static var scheduler: Scheduler {
    guard let scheduler = Scheduler.current, scheduler.isExecuting else {
      preconditionFailure("only inside a scenario")
    }
    return scheduler
  }

  // MARK: - Implementation

  private struct Settings {
    let stepLimit: Int
    let allowsTime: Bool
    var expectedTrap: String?

    func run(
      _ policy: any SchedulePolicy, isTracing: Bool = false, _ scenario: @escaping () -> Void
    ) -> (failure: ModelFailure?, steps: Int, decisions: Int) {
      ModelFaults.disarm()
      Processor.affinityCount = 2
      Runtime.beginAfresh()
      Model.resetHook?()
      let scheduler = Scheduler(
        policy: policy, stepLimit: stepLimit, allowsTime: allowsTime, isTracing: isTracing)
      var failure = scheduler.execute {
        scenario()
        if scheduler.hasUnfinishedThreads { scheduler.join() }
      }
      if let expectedTrap {
        if let trap = failure, trap.kind == .trap, trap.message.contains(expectedTrap) {
          failure = nil
        } else if failure == nil {
          failure = ModelFailure(
            kind: .check, message: "no trap with \"\(expectedTrap)\"",
            schedule: ModelSchedule(scheduler.choices))
        }
      }
      return (failure, scheduler.steps, scheduler.decisions)
    }
  }

  /// Runs one execution whose result does not count, so that the engine's lazy globals exist in all others.
  @discardableResult
  private static func warmUp(_ settings: Settings, _ scenario: @escaping () -> Void) -> Int {
    settings.run(Replay(ModelSchedule([])), scenario).decisions
  }

  private static func search(
    _ name: String, _ bound: Int, _ stale: Int, _ maxExecutions: Int, _ reduce: Bool, _ settings: Settings,
    _ scenario: @escaping () -> Void
  ) -> ModelResult {
    var result = ModelResult(name: name)
    let search = DepthFirstSearch(bound: bound, stale: stale, reduces: reduce)
    while result.executions < min(maxExecutions, limit) {
      let run = settings.run(search, scenario)
      result.executions += 1
      result.steps += run.steps
      result.failure = run.failure
      if run.failure != nil { break }
      if !search.advance() {
        result.isComplete = true
        break
      }
    }
    if result.executions == limit && result.failure == nil { result.isComplete = true }
    result.pruned = search.pruned
    result.states = search.states
    return result
  }

  /// Replays the failure to add its trace.
  private static func traced(
    _ failure: ModelFailure, _ settings: Settings, _ scenario: @escaping () -> Void
  ) -> ModelFailure {
    let again = settings.run(Replay(failure.schedule), isTracing: true, scenario).failure
    guard let again, again.kind == failure.kind else {
      var failure = failure
      failure.message += " — but its replay ended with \(again?.message ?? "no failure")"
      return failure
    }
    return again
  }

  /// Runs `body` under the lock on its own thread, so that coroutines do not use the caller's stack.
  private static func exclusively<Result: Sendable>(_ body: () -> Result) -> Result {
    lock.withLock { _ in
      var result: Result?
      withoutActuallyEscaping(body) { body in
        var work = { result = body() }
        // SAFETY: only the other thread uses the pointer, and this call waits for that thread.
        let failure = withUnsafeMutablePointer(to: &work) { pointer in
          model_run_on_own_thread(
            { $0!.assumingMemoryBound(to: (() -> Void).self).pointee() }, pointer)
        }
        precondition(failure == 0, "cannot start the model's thread: errno \(failure)")
      }
      return result!
    }
  }
}
