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
///     #expect(result.failure == nil && result.isExplored, "\(result)")
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

  /// The most executions of an exploration, if CONCOURSE_MODEL_LIMIT says so. One that ends there is cut off.
  private static let limit = number("CONCOURSE_MODEL_LIMIT") ?? .max

  static let defaultStale = number("CONCOURSE_MODEL_STALE") ?? 1

  /// Whether explorations make stores early unless they say otherwise: CONCOURSE_MODEL_EARLY (`Scripts/model --early`).
  static let defaultEarly = getenv("CONCOURSE_MODEL_EARLY") != nil

  /// The least bound of the explorations with one, and the seconds after which each of them is cut off:
  /// `Scripts/model --deep`.
  private static let deep = number("CONCOURSE_MODEL_BOUND").map { bound in
    (bound: bound, seconds: number("CONCOURSE_MODEL_SECONDS") ?? 600)
  }

  private static func number(_ name: String) -> Int? { getenv(name).flatMap { Int(String(cString: $0)) } }

  /// Whether each exploration prints its size: CONCOURSE_MODEL_REPORT.
  private static let isReporting = getenv("CONCOURSE_MODEL_REPORT") != nil

  /// What a search may leave out.
  struct Reduction: OptionSet, Sendable {
    let rawValue: Int
    /// The executions from a state that is known (`History`).
    static let states = Reduction(rawValue: 1)
    /// The preemptions before steps that race with none (`PartialOrder`).
    static let order = Reduction(rawValue: 2)
    /// Both, or what CONCOURSE_MODEL_REDUCE says.
    static let all = number("CONCOURSE_MODEL_REDUCE").map { Reduction(rawValue: $0) } ?? [.states, .order]
  }

  // MARK: - Exploring

  /// Visits every schedule of `scenario` with at most `bound` preemptions and `stale` stale operations, then those with
  /// at most `freshBound` preemptions and no stale operation, or finds one that fails.
  ///
  /// - Parameters:
  ///   - bound: The number of preemptions in one execution. `Scripts/model --deep` raises it, unless it is 0.
  ///   - freshBound: The same for a second search without stale operations; none if it is not more than `bound`.
  ///   - stale: The number of operations in one execution that use another store than the newest, by default 1, or
  ///     what CONCOURSE_MODEL_STALE says.
  ///   - early: Whether threads may make stores early, each of which is also a stale operation (`EarlyStore`).
  ///   - maxExecutions: The limit after which the search stops; the result is then incomplete.
  ///   - allowTime: Whether timeouts may end waits once no thread can continue.
  ///   - reduce: What the search leaves out, since it leads to nothing new.
  ///   - wakesForNothing: Whether the kernel may wake a sleeper for nothing, which counts as a stale operation.
  ///   - stepLimit: The steps after which an execution counts as endless.
  ///   - expectedTrap: A part of the message of the trap that must end every execution.
  ///   - allowedTrap: A part of the message of a trap that may end an execution.
  ///   - fault: A planted fault in the engine, which the search must find.
  ///   - isScenario: Whether there may be a second search, a report of the size, and a simpler failure.
  static func explore(
    _ name: String, bound: Int = 2, stale: Int = defaultStale, early: Bool = defaultEarly,
    freshBound: Int = 0,
    maxExecutions: Int = 100_000, allowTime: Bool = false,
    reduce: Reduction = .all, wakesForNothing: Bool = true, stepLimit: Int = 20_000,
    expectedTrap: String? = nil,
    allowedTrap: String? = nil, fault: PlantedFault? = nil, isScenario: Bool = true,
    _ scenario: @escaping () -> Void
  ) -> ModelResult {
    let goesDeeper = isScenario && bound > 0 && reduce == .all && fault == nil && Mutation.current == nil
    var searches = [(bound: bound, stale: stale)]
    if goesDeeper && freshBound > bound { searches.append((freshBound, 0)) }
    var maxExecutions = maxExecutions
    if goesDeeper, let deep { (searches, maxExecutions) = ([(max(bound, deep.bound), stale)], .max) }
    return exclusively {
      ModelFaults.planted = fault
      defer { ModelFaults.planted = nil }
      let settings = Settings(
        stepLimit: stepLimit, allowsTime: allowTime, wakesForNothing: wakesForNothing,
        makesEarlyStores: early,
        expectedTrap: expectedTrap,
        allowedTrap: allowedTrap)
      warmUp(settings, scenario)
      var result = ModelResult(name: name)
      for (bound, stale) in searches {
        let start = clock()
        let found = search(name, bound, stale, maxExecutions, reduce, settings, scenario)
        if isReporting && isScenario {
          let seconds = Double(clock() - start) / Double(CLOCKS_PER_SEC)
          print("\(found.summary), \(seconds) s, bound \(bound), stale \(stale)")
        }
        result = found.following(result)
        guard let failure = found.failure else { continue }
        // A mutant is dead or alive; why matters only to a reader.
        if !isScenario || Mutation.current != nil || fault != nil { break }
        // A failure with fewer stale operations and preemptions is easier to read.
        var simplest = failure
        simplify: for fewerStale in 0...stale {
          for fewer in 0...bound where (fewerStale, fewer) != (stale, bound) {
            let simpler = search(name, fewer, fewerStale, maxExecutions, reduce, settings, scenario)
            guard let failure = simpler.failure else { continue }
            simplest = failure
            break simplify
          }
        }
        result.failure = traced(simplest, settings, scenario)
        break
      }
      return result
    }
  }

  /// The seed of random schedules: of a mutant always the same, so that it is killed each time or never.
  static var newSeed: UInt64 { Mutation.current == nil ? .random(in: 0...UInt64.max) : 1 }

  /// Runs `scenario` under random schedules. The result includes the seed, which repeats them.
  /// - Parameter preemptions: How often a running thread drops to the lowest priority, per execution.
  /// - Parameter stale: How often an operation uses another store than the newest, per execution.
  static func random(
    _ name: String, seed: UInt64 = newSeed, runs: Int, preemptions: Int = 3,
    stale: Int = 2,
    allowTime: Bool = false, stepLimit: Int = 20_000, expectedTrap: String? = nil, fault: PlantedFault? = nil,
    _ scenario: @escaping () -> Void
  ) -> ModelResult {
    exclusively {
      ModelFaults.planted = fault
      defer { ModelFaults.planted = nil }
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

  #if LEDGER
    /// Runs `scenario` once.
    static func once(
      _ name: String, _ policy: any SchedulePolicy, stepLimit: Int, allowsTime: Bool,
      _ scenario: @escaping () -> Void
    ) -> ModelResult {
      exclusively {
        let run = Settings(stepLimit: stepLimit, allowsTime: allowsTime).run(policy, scenario)
        return ModelResult(
          name: name, executions: 1, steps: run.steps, isComplete: true, failure: run.failure)
      }
    }
  #endif

  /// Repeats one execution, step by step.
  /// - Returns: Its failure with the trace of all steps, or nil if it does not fail.
  static func replay(
    _ schedule: ModelSchedule, allowTime: Bool = false, stepLimit: Int = 20_000, fault: PlantedFault? = nil,
    _ scenario: @escaping () -> Void
  ) -> ModelFailure? {
    exclusively {
      ModelFaults.planted = fault
      defer { ModelFaults.planted = nil }
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

  /// The shards of the pool, as `CONCOURSE_TOPOLOGY` says them; a scenario sets them before it uses the engine, and its
  /// threads choose theirs.
  static func setTopology(_ text: String) {
    PoolSize.topology = Topology.pretended(text)
    _ = PoolSize.refreshWidth()
  }

  /// Lets virtual time pass. Only in scenarios with `allowTime`.
  static func sleep(nanoseconds: UInt64) {
    let scheduler = scheduler
    _ = scheduler.sleep(on: 0, until: scheduler.elapsed + nanoseconds)
  }

  /// The calling thread computes for so long. Only in scenarios with `allowTime`.
  static func compute(nanoseconds: UInt64) { scheduler.compute(nanoseconds) }

  /// Makes a look at the clock a step of its own, for scenarios whose threads call `advance` or `setWall`.
  static func moveClock() { scheduler.clockMoves = true }

  /// Moves both clocks, while other threads can run.
  static func advance(nanoseconds: UInt64) { scheduler.advance(nanoseconds) }

  /// Sets the wall clock forwards or backwards.
  static func setWall(by nanoseconds: Int64) { scheduler.setWall(by: nanoseconds) }

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
    var wakesForNothing = true
    var makesEarlyStores = false
    var expectedTrap: String?
    /// A part of the message of a trap that may end an execution.
    var allowedTrap: String?

    func run(
      _ policy: any SchedulePolicy, isTracing: Bool = false, _ scenario: @escaping () -> Void
    ) -> (failure: ModelFailure?, steps: Int, decisions: Int) {
      ModelFaults.disarm()
      Processor.affinityCount = 2
      WordIdentity.beginAfresh()
      Runtime.beginAfresh()
      Model.resetHook?()
      let scheduler = Scheduler(
        policy: policy, stepLimit: stepLimit, allowsTime: allowsTime, wakesForNothing: wakesForNothing,
        isTracing: isTracing)
      var failure = scheduler.execute {
        scenario()
        if scheduler.hasUnfinishedThreads { scheduler.join() }
      }
      if failure?.kind == .impossible { return (nil, scheduler.steps, scheduler.decisions) }
      if let allowedTrap, let trap = failure, trap.kind == .trap, trap.message.contains(allowedTrap) {
        failure = nil
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
    _ name: String, _ bound: Int, _ stale: Int, _ maxExecutions: Int, _ reduce: Reduction,
    _ settings: Settings,
    _ scenario: @escaping () -> Void
  ) -> ModelResult {
    var result = ModelResult(name: name)
    let search = DepthFirstSearch(
      bound: bound, stale: stale, makesEarlyStores: settings.makesEarlyStores, reduction: reduce)
    let start = clock()
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
      if maxExecutions == .max && result.executions % 64 == 0 && isLate(start) { break }
    }
    if result.failure == nil && !result.isComplete && (result.executions == limit || isLate(start)) {
      result.isCutOff = true
    }
    result.pruned = search.pruned
    result.states = search.states
    return result
  }

  private static func isLate(_ start: clock_t) -> Bool {
    deep.map { (clock() - start) / CLOCKS_PER_SEC >= $0.seconds } ?? false
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
