internal import CModelContext

/// Explores the interleavings of a scenario.
///
/// A scenario is a closure that runs once per execution: it builds fresh state, names its threads with
/// `Model.thread`, lets them run with `Model.run()`, and then checks what they left behind. It must do
/// the same things each time; only the scheduler may make a difference.
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
/// What the model sees: every operation of `Atomic`, `Futex`, `Processor`, `SystemThread` and
/// `Model.Cell`. What it does not: plain memory (use `Model.Cell` and `Model.Log` for what threads share
/// in a scenario), the order of reference counting (who runs a `deinit`), and reorderings by the
/// processor (all atomics are sequentially consistent; see `ModelFaults.staleLoadsIn` for one of them).
enum Model {
  /// Makes the engine forget the last execution; called before each, outside any thread of the model.
  // SAFETY: set once by a test before it explores; read under `lock` only.
  nonisolated(unsafe) static var resetHook: (() -> Void)?

  /// Files (as `#fileID` has them) whose atomics belong to one thread at a time.
  static let privateFiles: [StaticString] = [
    "ConcourseModel/NodeMagazine.swift", "ConcourseModel/NodeSlab.swift",
  ]

  /// The model's state is global: one exploration at a time in the whole process.
  private static let lock = Mutex(())

  // MARK: - Exploring

  /// Visits every schedule of `scenario` with at most `bound` preemptions, or finds one that fails.
  ///
  /// - Parameters:
  ///   - bound: how often a thread that could go on may be held up for another.
  ///   - maxExecutions: gives up after so many; the result is then not complete.
  ///   - allowTime: whether timeouts may end waits once nobody can go on.
  ///   - reduce: whether states reached before are recognised and not explored again.
  ///   - stepLimit: how many steps an execution may have before it counts as endless.
  ///   - expectedTrap: part of the message of a trap in which every execution has to end.
  static func explore(
    _ name: String, bound: Int = 2, maxExecutions: Int = 100_000, allowTime: Bool = false,
    reduce: Bool = true, stepLimit: Int = 20_000, expectedTrap: String? = nil,
    _ scenario: @escaping () -> Void
  ) -> ModelResult {
    exclusively {
      let settings = Settings(stepLimit: stepLimit, allowsTime: allowTime, expectedTrap: expectedTrap)
      warmUp(settings, scenario)
      var result = search(name, bound, maxExecutions, reduce, settings, scenario)
      guard result.failure != nil else { return result }
      // The same failure with fewer preemptions is easier to read.
      for fewer in 0..<bound {
        let simpler = search(name, fewer, maxExecutions, reduce, settings, scenario)
        guard let failure = simpler.failure else { continue }
        result.failure = failure
        break
      }
      result.failure = traced(result.failure!, settings, scenario)
      return result
    }
  }

  /// Runs `scenario` under random schedules; the result tells the seed, which repeats them.
  /// - Parameter preemptions: how often a running thread is pushed back, per execution.
  static func random(
    _ name: String, seed: UInt64 = .random(in: 0...UInt64.max), runs: Int, preemptions: Int = 3,
    allowTime: Bool = false, stepLimit: Int = 20_000, expectedTrap: String? = nil,
    _ scenario: @escaping () -> Void
  ) -> ModelResult {
    exclusively {
      let settings = Settings(stepLimit: stepLimit, allowsTime: allowTime, expectedTrap: expectedTrap)
      var result = ModelResult(name: name, seed: seed)
      var seeds = SplitMix(state: seed)
      var length = warmUp(settings, scenario)
      for _ in 0..<runs {
        let policy = RandomPriorities(seed: seeds.next(), drops: preemptions, length: length)
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

  /// Runs `scenario` once, its threads making one step each in turn: for what must not depend on a thread
  /// being slower than the others.
  static func inTurn(
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
  /// - Returns: its failure with the trace of all steps; nil when it does not fail.
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

  /// Adds a thread that begins with `run()` and has to end.
  static func thread(_ name: String, _ body: @escaping () -> Void) {
    scheduler.spawn(name, isBackground: false, body)
  }

  /// Adds a thread that may sleep for ever, as a pool's worker does.
  static func background(_ name: String, _ body: @escaping () -> Void) {
    scheduler.spawn(name, isBackground: true, body)
  }

  /// Lets the threads run until all have ended and nobody in the background can go on.
  static func run() { scheduler.join() }

  /// Ends the execution as failed unless `condition` holds.
  static func check(
    _ condition: Bool, _ message: @autoclosure () -> String, file: StaticString = #fileID, line: UInt = #line
  ) {
    if !condition { scheduler.fail(.check, "\(message()) (\(file):\(line))") }
  }

  /// Gives the execution this many processors, before the engine starts workers.
  static func setProcessors(_ count: Int) {
    Processor.affinityCount = count
    _ = PoolSize.refreshWidth()
  }

  /// Lets virtual time pass: for scenarios that allow time.
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

  // MARK: - The machinery

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

  /// One execution whose result does not count: the engine's lazy globals then exist in all others.
  @discardableResult
  private static func warmUp(_ settings: Settings, _ scenario: @escaping () -> Void) -> Int {
    settings.run(Replay(ModelSchedule([])), scenario).decisions
  }

  private static func search(
    _ name: String, _ bound: Int, _ maxExecutions: Int, _ reduce: Bool, _ settings: Settings,
    _ scenario: @escaping () -> Void
  ) -> ModelResult {
    var result = ModelResult(name: name)
    let search = DepthFirstSearch(bound: bound, reduces: reduce)
    while result.executions < maxExecutions {
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
    result.pruned = search.pruned
    return result
  }

  /// The failure once more, with its trace.
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

  /// Runs `body` under the lock on a thread of its own, so that no coroutine meets the caller's stack.
  private static func exclusively<Result: Sendable>(_ body: () -> Result) -> Result {
    lock.withLock { _ in
      var result: Result?
      withoutActuallyEscaping(body) { body in
        var work = { result = body() }
        // SAFETY: the pointer is used by the one thread that is waited for right here.
        let failure = withUnsafeMutablePointer(to: &work) { pointer in
          model_run_on_own_thread(
            { $0!.assumingMemoryBound(to: (() -> Void).self).pointee() }, pointer)
        }
        precondition(failure == 0, "no thread for the model: errno \(failure)")
      }
      return result!
    }
  }
}
