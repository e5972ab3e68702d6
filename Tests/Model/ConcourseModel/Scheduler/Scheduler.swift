internal import CModelContext
internal import Glibc

/// Runs one execution: coroutines on one thread, one of which makes a step at a time.
///
/// A step is decided before it is made: `arrive` chooses who goes on, the chosen one does its
/// operation, `note` records it.
final class Scheduler {
  private let policy: any SchedulePolicy
  private let stepLimit: Int
  private let allowsTime: Bool
  private let isTracing: Bool

  private var coroutines: [Coroutine] = []
  /// Who is running; nil while the driver is.
  private(set) var running: Coroutine?
  private var driver: OpaquePointer?
  /// False on the driver, whose operations are no scheduling points.
  private(set) var isExecuting = false
  /// Between `Model.run()` and its return: only then are there choices.
  private var isExploring = false

  private var locations: [UInt: Location] = [:]
  private var sleepers: [UInt: [Coroutine]] = [:]
  /// Virtual nanoseconds since the execution began.
  private(set) var elapsed: UInt64 = 0
  /// Whether the scenario has cells, for which alone it matters what happens before what.
  var ordersCells = false
  /// How often a word has changed.
  private var changes = 0
  /// How often everybody who spins was let go on although nothing had changed.
  private var idleRounds = 0
  private(set) var steps = 0
  /// How often somebody was chosen, and where that was not the one who would have gone on by himself.
  private(set) var decisions = 0
  private(set) var choices: [ModelSchedule.Choice] = []
  private var trace: [String] = []
  private var failure: ModelFailure?

  init(policy: any SchedulePolicy, stepLimit: Int, allowsTime: Bool, isTracing: Bool) {
    self.policy = policy
    self.stepLimit = stepLimit
    self.allowsTime = allowsTime
    self.isTracing = isTracing
  }

  /// The scheduler that drives the calling thread.
  static var current: Scheduler? {
    // SAFETY: `execute` keeps the scheduler alive for as long as the word is set.
    model_current().map { Unmanaged<Scheduler>.fromOpaque($0).takeUnretainedValue() }
  }

  /// Makes the calling coroutine's next operation a scheduling point.
  /// - Returns: nil outside executions.
  static func arrive() -> Scheduler? {
    guard let scheduler = current, scheduler.isExecuting else { return nil }
    scheduler.arrive()
    return scheduler
  }

  /// The same for an operation in `file`, which may be one whose words belong to one thread at a time:
  /// those are no scheduling points, since such steps commute with all of anybody else's.
  static func arrive(in file: StaticString) -> Scheduler? {
    guard let scheduler = current, scheduler.isExecuting, !scheduler.isPrivate(file) else { return nil }
    scheduler.arrive()
    return scheduler
  }

  private func isPrivate(_ file: StaticString) -> Bool {
    // The length tells most files apart without a look at their names.
    Model.privateFiles.contains {
      $0.utf8CodeUnitCount == file.utf8CodeUnitCount
        && memcmp($0.utf8Start, file.utf8Start, file.utf8CodeUnitCount) == 0
    }
  }

  // MARK: - One execution

  /// Runs `scenario` to its end or to its first failure.
  func execute(_ scenario: @escaping () -> Void) -> ModelFailure? {
    driver = model_context_adopt()
    // SAFETY: the word is cleared before this call, which keeps the scheduler alive, returns.
    model_set_current(Unmanaged.passUnretained(self).toOpaque())
    let main = add("main", isBackground: false, scenario)
    isExecuting = true
    resume(main, leaving: driver!)
    isExecuting = false
    if failure == nil { retire() }
    running = nil
    model_set_current(nil)
    for coroutine in coroutines {
      // Stacks of coroutines that sleep for ever are dropped with whatever they hold.
      model_context_destroy(coroutine.context!)
      // What a failed execution leaves behind may trap when it is destroyed half-way: it stays.
      // SAFETY: never balanced; one execution of an exploration can fail.
      if failure != nil { _ = Unmanaged.passRetained(coroutine) }
    }
    model_context_destroy(driver!)
    coroutines = []
    locations = [:]
    sleepers = [:]
    return failure.map {
      var failure = $0
      failure.schedule = ModelSchedule(choices)
      failure.trace = trace
      return failure
    }
  }

  /// Takes back what the engine keeps per thread. At the end of the execution only, when no coroutine is in the middle
  /// of something.
  private func retire() {
    for coroutine in coroutines {
      running = coroutine
      NodeStock.collect(coroutine.threadState)
    }
  }

  private func add(_ name: String, isBackground: Bool, _ body: @escaping () -> Void) -> Coroutine {
    let coroutine = Coroutine(
      id: coroutines.count, name: name, isBackground: isBackground, body: body)
    // SAFETY: the scheduler keeps the coroutine until every context is gone.
    let argument = Unmanaged.passUnretained(coroutine).toOpaque()
    guard let context = model_context_create(enterCoroutine, argument) else {
      fatalError("no memory for another stack")
    }
    coroutine.context = context
    let wasExecuting = isExecuting
    isExecuting = false
    NodeStock.fill(coroutine.threadState)
    isExecuting = wasExecuting
    coroutines.append(coroutine)
    return coroutine
  }

  private func resume(_ next: Coroutine, leaving context: OpaquePointer) {
    running = next
    next.isFresh = true
    next.status = .ready
    model_context_switch(context, next.context!)
  }

  /// The running coroutine's body has returned: who goes on?
  fileprivate func finish() -> OpaquePointer {
    let me = running!
    me.body = nil
    me.status = .finished
    if me.id == 0 { return driver! }
    let next = select(.stopped)
    running = next
    next.isFresh = true
    next.status = .ready
    return next.context!
  }

  /// Ends the execution.
  func fail(_ kind: ModelFailure.Kind, _ message: String) -> Never {
    failure = ModelFailure(kind: kind, message: message, schedule: ModelSchedule([]))
    if isTracing { trace.append("\(running!.title): \(kind): \(message)") }
    model_context_switch(running!.context!, driver!)
    fatalError("an execution went on after its failure")
  }

  // MARK: - Decisions

  private enum Situation {
    /// The running coroutine could make its step.
    case atStep
    /// It spins, sleeps, joins or has ended.
    case stopped
  }

  private func arrive() {
    let me = running!
    steps += 1
    if steps > stepLimit { fail(.endless, "more than \(stepLimit) steps") }
    if me.isFresh {
      me.isFresh = false
      return
    }
    let next = select(.atStep)
    if next !== me { resume(next, leaving: me.context!) }
    me.isFresh = false
  }

  /// Lets somebody else go on; returns once the running coroutine has been chosen again.
  private func stop() {
    let me = running!
    let next = select(.stopped)
    if next === me {
      me.isFresh = true
      me.status = .ready
    } else {
      resume(next, leaving: me.context!)
    }
  }

  private func select(_ situation: Situation) -> Coroutine {
    decisions += 1
    let me = running!
    let continuing = situation == .atStep
    if continuing && !(isExploring && policy.wantsChoice(continuing: true)) { return me }
    while true {
      let options = options(continuing: continuing)
      if options.isEmpty {
        if let joined = unblock() { return joined }
        continue
      }
      if !isExploring || options.count == 1 { return coroutines[options[0]] }
      guard
        let index = policy.choose(options, continuing: continuing, at: decisions, state: { self.stateHash })
      else { fail(.nondeterministic, "the options \(options) are not those of the earlier execution") }
      if index != 0 { choices.append(ModelSchedule.Choice(decision: decisions, thread: options[index])) }
      return coroutines[options[index]]
    }
  }

  /// Who can make the next step: the running coroutine first if it can, then the others in turn.
  private func options(continuing: Bool) -> [Int] {
    let me = running!.id
    var options: [Int] = continuing ? [me] : []
    var other = me
    repeat {
      other = other + 1 == coroutines.count ? 0 : other + 1
      if !(continuing && other == me), canGoOn(coroutines[other]) { options.append(other) }
    } while other != me
    return options
  }

  private func canGoOn(_ coroutine: Coroutine) -> Bool {
    switch coroutine.status {
    case .ready: true
    case .paused: changes - coroutine.ownChanges > coroutine.changesSeen
    case .asleep, .joining, .finished: false
    }
  }

  /// Nobody can go on: lets spinners look once more, ends the join, or lets time pass.
  /// - Returns: the scenario's body when everybody has come to rest.
  private func unblock() -> Coroutine? {
    let spinning = coroutines.filter { $0.status == .paused }
    if !spinning.isEmpty {
      idleRounds += 1
      if idleRounds > 1_000 { fail(.endless, "\(spinning.map(\.title)) spin for something nobody does") }
      for coroutine in spinning { coroutine.status = .ready }
      return nil
    }
    let unfinished = coroutines.filter {
      !$0.isBackground && $0.status != .finished && $0.status != .joining
    }
    if unfinished.isEmpty { return coroutines[0] }
    let deadlines = coroutines.compactMap { coroutine in
      if case .asleep(_, let deadline) = coroutine.status { return deadline }
      return nil
    }
    let stuck = unfinished.map(\.title)
    guard let deadline = deadlines.min() else { fail(.deadlock, "\(stuck) cannot go on") }
    if !allowsTime { fail(.timeNeeded, "only a timeout could free \(stuck)") }
    elapsed = max(elapsed, deadline)
    if isTracing { trace.append("time passes: \(elapsed) ns") }
    for coroutine in coroutines {
      if case .asleep(let address, let until?) = coroutine.status, until <= elapsed {
        sleepers[address]?.removeAll { $0 === coroutine }
        coroutine.timedOut = true
        coroutine.status = .ready
        coroutine.history = History.mix(coroutine.history, elapsed)
      }
    }
    return nil
  }

  /// What the rest of the execution depends on.
  private var stateHash: UInt64 {
    var hash = elapsed
    for coroutine in coroutines {
      // A spinner's chances depend on the order of independent changes, which histories forget.
      let mayLookAgain = changes - coroutine.ownChanges > coroutine.changesSeen
      hash &+= History.mix(coroutine.history, coroutine.changesSeen > 0 && mayLookAgain ? 2 : 1)
    }
    return hash
  }

  // MARK: - Steps

  /// Records the step just made by the running coroutine.
  func note(_ step: Step) {
    let me = running!
    let location = location(at: step.address)
    var history = History.mix(me.history, location.lastWrite)
    if ordersCells && step.acquires { me.clock.join(location.released) }
    if step.isRead {
      location.reads &+= history
    } else {
      history = History.mix(history, location.reads)
      location.lastWrite = history
      location.reads = 0
      if !ordersCells {
        // Nobody will ask.
      } else if step.releases {
        if !step.isReadModifyWrite { location.released = VectorClock() }
        location.released.join(me.clock)
      } else if step.kind == .store {
        location.released = VectorClock()
      }
    }
    me.history = history
    if ordersCells { me.clock[me.id] += 1 }
    if step.was != step.now {
      changes += 1
      me.ownChanges += 1
      idleRounds = 0
    }
    if ModelFaults.staleLoadsIn != nil { me.lastSeen[step.address] = step.now }
    if isTracing { trace.append("\(me.title): w\(location.number) \(step.text)") }
  }

  private func location(at address: UInt) -> Location {
    if let known = locations[address] { return known }
    let new = Location(number: locations.count + 1)
    locations[address] = new
    return new
  }

  /// What a load in `function` shall see instead of the truth; nil for the truth.
  func staleBits(for step: Step, in function: StaticString) -> WordBits? {
    guard let faulty = ModelFaults.staleLoadsIn, function.description == faulty else { return nil }
    return running!.lastSeen[step.address]
  }

  func remark(_ text: String) {
    if isTracing { trace.append("\(running?.title ?? "driver"): \(text)") }
  }

  // MARK: - Sleeping

  func sleep(on address: UInt, until deadline: UInt64?) -> Futex.Outcome {
    let me = running!
    if let deadline, deadline <= elapsed { return .timedOut }
    me.timedOut = false
    me.status = .asleep(address: address, until: deadline)
    sleepers[address, default: []].append(me)
    stop()
    return me.timedOut ? .timedOut : .lookAgain
  }

  func wake(on address: UInt, count: Int) {
    for _ in 0..<count {
      guard let next = sleepers[address]?.first else { return }
      sleepers[address]!.removeFirst()
      next.status = .ready
      next.history = History.mix(next.history, running!.history)
    }
  }

  func pause() {
    guard isExecuting, let me = running else { return }
    me.history = History.mix(me.history, 1)
    let seen = changes - me.ownChanges
    let mayLookAgain = seen > me.changesSeen
    me.status = .paused
    if !mayLookAgain || !isExploring {
      me.changesSeen = seen
      stop()
      return
    }
    // Somebody changed something since the last pause, so looking again at once is allowed.
    stop()
    me.changesSeen = seen
  }

  func isAsleep(_ id: Int) -> Bool? {
    let me = running!
    // The answer depends on what everybody has done, so it comes after all of it.
    me.history = History.mix(me.history, stateHash)
    guard coroutines.indices.contains(id) else { return nil }
    if case .asleep = coroutines[id].status { return true }
    return coroutines[id].status == .finished ? nil : false
  }

  // MARK: - Threads

  /// Whether a thread of the scenario has not run yet.
  var hasUnfinishedThreads: Bool {
    coroutines.contains { $0.id != 0 && !$0.isBackground && $0.status != .finished }
  }

  @discardableResult
  func spawn(_ name: String, isBackground: Bool, _ body: @escaping () -> Void) -> Int {
    let me = running!
    let child = add(name, isBackground: isBackground, body)
    me.history = History.mix(me.history, UInt64(child.id))
    child.history = History.mix(child.history, me.history)
    child.clock.join(me.clock)
    me.clock[me.id] += 1
    if isTracing { trace.append("\(me.title): spawns \(child.title)") }
    return child.id
  }

  /// Lets everybody run until all threads have finished and nobody in the background can go on.
  func join() {
    let me = running!
    if me.id != 0 || isExploring {
      fail(.trap, "Model.run() belongs into the scenario's own body, once at a time")
    }
    isExploring = true
    me.status = .joining
    stop()
    isExploring = false
    for coroutine in coroutines {
      me.clock.join(coroutine.clock)
      me.history = History.mix(me.history, coroutine.history)
    }
  }
}

/// Where every coroutine begins.
private func enterCoroutine(_ argument: UnsafeMutableRawPointer?) -> OpaquePointer {
  // SAFETY: the argument is the coroutine that its scheduler keeps.
  let coroutine = Unmanaged<Coroutine>.fromOpaque(argument!).takeUnretainedValue()
  coroutine.body?()
  return Scheduler.current!.finish()
}
