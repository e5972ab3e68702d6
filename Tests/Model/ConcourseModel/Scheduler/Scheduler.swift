internal import CModelContext
internal import Glibc

/// Runs one execution: coroutines on one thread, one step at a time.
///
/// A step is decided before it is made: `arrive` chooses the next coroutine, that coroutine performs its operation, and
/// `finish` records it. `Access` has the steps on atomics.
final class Scheduler {
  // SAFETY: used on the exploring thread only; explorations run one at a time.
  private nonisolated(unsafe) static var executions: UInt32 = 0

  /// The number of this execution in the process.
  let number: UInt32
  let policy: any SchedulePolicy
  let partialOrder: PartialOrder?
  private let stepLimit: Int
  private let allowsTime: Bool
  private let mayWakeForNothing: Bool
  private let isTracing: Bool

  private(set) var coroutines: [Coroutine] = []
  /// The running coroutine; nil while the driver runs.
  private(set) var running: Coroutine?
  private var driver: OpaquePointer?
  /// False on the driver, whose operations are not scheduling points.
  private(set) var isExecuting = false
  /// True during `Model.run()`, the only time with choices.
  private(set) var isExploring = false

  private(set) var locations: [UInt32: Location] = [:]
  /// The sequentially consistent steps.
  var total = TotalOrder()
  private var orders: [UInt: StepOrder] = [:]
  private var sleepers: [UInt: [Coroutine]] = [:]
  /// What happened before the wake-ups on each word.
  private var wakers: [UInt: VectorClock] = [:]
  /// The accesses of plain memory beside each word.
  var neighbours: [UInt32: PlainRecord] = [:]
  /// Virtual nanoseconds since the start of the execution.
  private(set) var elapsed: UInt64 = 0
  /// How far the wall clock has been set forwards.
  private(set) var wallOffset: Int64 = 0
  /// Whether the scenario moves the clock. A look at it is a step then.
  var clockMoves = false
  /// The number of changes to words.
  private var changes = 0
  /// How often the spinning coroutines were resumed although no word had changed.
  private var idleRounds = 0
  private(set) var steps = 0
  /// The number of decisions; `choices` holds those that differ from the default.
  private(set) var decisions = 0
  var choices: [ModelSchedule.Choice] = []
  private var trace: [String] = []
  private var failure: ModelFailure?
  /// A failure that counts if the others come to their early stores.
  private(set) var pendingFailure: ModelFailure?

  init(
    policy: any SchedulePolicy, stepLimit: Int, allowsTime: Bool, wakesForNothing: Bool, isTracing: Bool
  ) {
    self.policy = policy
    partialOrder = policy.partialOrder
    self.stepLimit = stepLimit
    self.allowsTime = allowsTime
    mayWakeForNothing = wakesForNothing
    self.isTracing = isTracing
    Self.executions &+= 1
    number = Self.executions
  }

  /// The scheduler that drives the calling thread.
  static var current: Scheduler? {
    // SAFETY: `execute` keeps the scheduler alive for as long as the word is set.
    model_current().map { Unmanaged<Scheduler>.fromOpaque($0).takeUnretainedValue() }
  }

  #if LEDGER
    // SAFETY: used on the exploring thread only; explorations run one at a time.
    /// The running coroutine's number while an execution runs, without a reference to anything.
    private(set) nonisolated(unsafe) static var runningThread: Int?
  #endif

  /// Makes the calling coroutine's next operation a scheduling point.
  /// - Returns: nil outside executions.
  static func arrive() -> Scheduler? {
    guard let scheduler = current, scheduler.isExecuting else { return nil }
    scheduler.arrive()
    return scheduler
  }

  /// Whether the words of `file` belong to one thread at a time (`Model.privateFiles`): their steps commute with all
  /// others and are not scheduling points.
  func isPrivate(_ file: StaticString) -> Bool {
    // Comparing the lengths first rejects most files.
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
    setRunning(nil)
    model_set_current(nil)
    for coroutine in coroutines {
      // Stacks of coroutines that sleep forever are dropped with everything on them.
      model_context_destroy(coroutine.context!)
      // Destroying the remains of a failed execution may trap, so they are leaked.
      // SAFETY: never balanced; one execution of an exploration can fail.
      if failure != nil { _ = Unmanaged.passRetained(coroutine) }
    }
    model_context_destroy(driver!)
    coroutines = []
    locations = [:]
    orders = [:]
    sleepers = [:]
    wakers = [:]
    neighbours = [:]
    return failure.map {
      var failure = $0
      failure.schedule = ModelSchedule(choices)
      failure.trace = trace
      return failure
    }
  }

  /// Takes back the engine's per-thread state. Only at the end of the execution, when no coroutine is in the middle of
  /// an operation.
  private func retire() {
    for coroutine in coroutines {
      running = coroutine
      #if !LEDGER
        NodeStock.collect(coroutine.threadState)
      #endif
    }
  }

  private func add(_ name: String, isBackground: Bool, _ body: @escaping () -> Void) -> Coroutine {
    precondition(coroutines.count < VectorClock.capacity, "more coroutines than a clock counts")
    let coroutine = Coroutine(
      id: coroutines.count, name: name, isBackground: isBackground, body: body)
    // SAFETY: the scheduler keeps the coroutine until every context is destroyed.
    let argument = Unmanaged.passUnretained(coroutine).toOpaque()
    guard let context = model_context_create(enterCoroutine, argument) else {
      fatalError("out of memory for a stack")
    }
    coroutine.context = context
    // In the ledger's build nodes come from slabs, as in the engine.
    #if !LEDGER
      makeWords(keysFrom: UInt64(coroutine.id) + 1) { NodeStock.fill(coroutine.threadState) }
    #endif
    coroutines.append(coroutine)
    return coroutine
  }

  #if !LEDGER
    /// Makes words on behalf of no coroutine, without steps.
    func makeWords(keysFrom base: UInt64, _ body: () -> Void) {
      let wasExecuting = isExecuting
      isExecuting = false
      WordIdentity.keysWithoutMaker(from: base, body)
      isExecuting = wasExecuting
    }
  #endif

  private func resume(_ next: Coroutine, leaving context: OpaquePointer) {
    setRunning(next)
    next.isFresh = true
    next.status = .ready
    next.overtaken.removeAll(keepingCapacity: true)
    model_context_switch(context, next.context!)
  }

  /// Called when the running coroutine's body has returned; chooses the next one.
  fileprivate func finish() -> OpaquePointer {
    let me = running!
    endOvertaking()
    me.body = nil
    me.status = .finished
    if me.id == 0 { return driver! }
    partialOrder?.sleeps(me.id)
    let next = select(.stopped)
    setRunning(next)
    next.isFresh = true
    next.status = .ready
    next.overtaken.removeAll(keepingCapacity: true)
    return next.context!
  }

  private func setRunning(_ coroutine: Coroutine?) {
    running = coroutine
    #if LEDGER
      Self.runningThread = coroutine?.id
    #endif
  }

  /// Ends the execution.
  func fail(_ kind: ModelFailure.Kind, _ message: String) -> Never {
    // After a trap that a scenario allows, the search goes on.
    if kind == .trap || kind == .impossible { partialOrder?.endsOthers() }
    if kind != .impossible { proveEarlyStores(before: kind, message) }
    failure = ModelFailure(kind: kind, message: message, schedule: ModelSchedule([]))
    if isTracing { trace.append("\(running!.title): \(kind): \(message)") }
    model_context_switch(running!.context!, driver!)
    fatalError("an execution continued after its failure")
  }

  /// Before a failure counts, the coroutines with early stores go on, one by one, until they have made them.
  private func proveEarlyStores(before kind: ModelFailure.Kind, _ message: String) {
    guard coroutines.contains(where: { !$0.early.isEmpty }) else { return }
    endOvertaking()
    if pendingFailure != nil { fail(.impossible, message) }
    pendingFailure = ModelFailure(kind: kind, message: message, schedule: ModelSchedule([]))
    remark("\(kind), if the early stores are made: \(message)")
    isExploring = false
    let me = running!
    me.status = .finished
    resume(nextToProve!, leaving: me.context!)
  }

  private var nextToProve: Coroutine? { coroutines.first { !$0.early.isEmpty } }

  // MARK: - Decisions

  private enum Situation {
    /// The running coroutine can make its step.
    case atStep
    /// It spins, sleeps, joins or has ended.
    case stopped
    /// It could, but others are to go first.
    case givesWay
  }

  func countStep() {
    steps += 1
    if steps > stepLimit { fail(.endless, "more than \(stepLimit) steps") }
  }

  func arrive() {
    let me = running!
    countStep()
    if me.isFresh {
      me.isFresh = false
      return
    }
    let next = select(.atStep)
    if next !== me { resume(next, leaving: me.context!) }
    me.isFresh = false
  }

  /// Lets another coroutine run; returns when the running one is chosen again.
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

  /// Lets another coroutine run, although the running one can go on.
  func giveWay() {
    let me = running!
    resume(select(.givesWay), leaving: me.context!)
    me.isFresh = false
    countStep()
  }

  private func select(_ situation: Situation) -> Coroutine {
    partialOrder?.endTransition()
    let next = pick(situation)
    partialOrder?.beginTransition(of: next.id, goesOn: situation == .atStep && next === running)
    return next
  }

  private func pick(_ situation: Situation) -> Coroutine {
    if pendingFailure != nil { return nextToProve! }
    decisions += 1
    let me = running!
    let continuing = situation == .atStep
    if continuing && !(isExploring && policy.wantsChoice(continuing: true)) { return me }
    while true {
      let options = options(continuing: continuing).filter { situation != .givesWay || $0 != me.id }
      if options.isEmpty && situation == .givesWay { fail(.impossible, "no other can go on") }
      if options.isEmpty {
        if let joined = unblock() { return joined }
        continue
      }
      if !isExploring || options.count == 1 { return coroutines[options[0]] }
      guard
        let index = policy.choose(options, continuing: continuing, at: decisions, state: { self.stateHash })
      else { fail(.nondeterministic, "the options \(options) differ from those of the earlier execution") }
      if index != 0 { choices.append(.thread(options[index], decision: decisions)) }
      return coroutines[options[index]]
    }
  }

  /// The store that the running coroutine's step reads or follows: the newest, unless the policy takes another one.
  /// - Parameter clock: What happens before the step.
  func choose(in location: Location, clock: VectorClock, where isAllowed: (Int) -> Bool) -> Int {
    let newest = location.top(for: running!)
    guard isExploring, newest > 0, policy.wantsStore(at: steps) else { return newest }
    var options = [newest]
    let floor = location.floor(for: clock)
    for index in stride(from: newest - 1, through: floor, by: -1) where isAllowed(index) {
      options.append(index)
    }
    if options.count == 1 { return newest }
    let me = running!.id
    guard
      let index = policy.chooseStore(among: options.count, of: me, at: steps, state: { self.stateHash })
    else { fail(.nondeterministic, "step \(steps) may use \(options.count) stores") }
    if index != 0 { choices.append(.store(index, step: steps)) }
    return options[index]
  }

  /// The coroutines that can make the next step: the running one first, then the others in order.
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

  /// Called when no coroutine can continue. Resumes spinning coroutines, ends the join, or advances time.
  /// - Returns: The scenario's body when all coroutines are at rest.
  private func unblock() -> Coroutine? {
    partialOrder?.everythingStops()
    let spinning = coroutines.filter { $0.status == .paused }
    if !spinning.isEmpty {
      idleRounds += 1
      if idleRounds > 1_000 { fail(.endless, "\(spinning.map(\.title)) spin for a change that never comes") }
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
    guard let deadline = (deadlines + [ModelKernel.nextAlarm].compactMap { $0 }).min() else {
      fail(.deadlock, "\(stuck) cannot continue")
    }
    if !allowsTime { fail(.timeNeeded, "only a timeout can end the wait of \(stuck)") }
    if let partialOrder {
      partialOrder.timePasses { reach(max(elapsed, deadline)) }
    } else {
      reach(max(elapsed, deadline))
    }
    return nil
  }

  /// Ends the sleeps whose deadlines have passed, and fires the kernel's timers.
  private func reach(_ time: UInt64) {
    elapsed = time
    if isTracing { trace.append("time passes: \(elapsed) ns") }
    for coroutine in coroutines {
      if case .asleep(let address, let until?) = coroutine.status, until <= elapsed {
        sleepers[address]?.removeAll { $0 === coroutine }
        coroutine.timedOut = true
        coroutine.status = .ready
        partialOrder?.wakes(coroutine.id)
        coroutine.history = History.mix(coroutine.history, elapsed)
      }
    }
    ModelKernel.ring()
  }

  /// A hash of everything that determines the rest of the execution.
  private var stateHash: UInt64 {
    var hash = elapsed &+ UInt64(bitPattern: wallOffset) &* 3
    for coroutine in coroutines {
      // Whether a coroutine may look again, now or at its next pause, depends on the order of independent changes and
      // pauses, which histories omit.
      let mayLookAgain = changes - coroutine.ownChanges > coroutine.changesSeen
      hash &+= History.mix(coroutine.history, mayLookAgain ? 2 : coroutine.status == .paused ? 3 : 1)
    }
    return hash
  }

  // MARK: - Steps

  /// Records a step on something that is not an atomic.
  func note(_ step: Step) {
    order(step)
    finish(step)
  }

  /// Puts a step into its place among the others on the same thing.
  func order(_ step: Step) {
    running!.history = orders[step.address, default: StepOrder()].add(
      isRead: step.isRead, to: running!.history)
  }

  /// Ends the step of the running coroutine, whose history contains it already.
  func finish(_ step: Step, at location: Location? = nil, _ remark: StaticString = "") {
    let me = running!
    me.clock[me.id] += 1
    if step.was != step.now { countChange() }
    if ModelFaults.planted != nil || Mutation.current != nil { me.lastSeen[step.address] = step.now }
    if isTracing {
      let word = location.map { "w\($0.number) " } ?? ""
      trace.append("\(me.title): \(word)\(step.text)\(remark)")
    }
  }

  func countChange() {
    changes += 1
    running!.ownChanges += 1
    idleRounds = 0
    partialOrder?.change()
  }

  func location(of word: WordIdentity, bits: () -> WordBits) -> Location {
    if let known = locations[word.number] { return known }
    let new = Location(
      number: locations.count + 1, thing: partialOrder?.number(of: word.key, .word) ?? 0, key: word.key,
      bits: bits())
    locations[word.number] = new
    placeEarlyStores(in: new)
    return new
  }

  /// What the running coroutine last saw in the word of a step, or nil.
  func lastSeen(for step: Step) -> WordBits? { running!.lastSeen[step.address] }

  func remark(_ text: String) {
    if isTracing { trace.append("\(running?.title ?? "driver"): \(text)") }
  }

  // MARK: - Sleeping

  /// What a thread's look at a word in the kernel follows.
  func kernelClock(of address: UInt) -> VectorClock { wakers[address] ?? VectorClock() }

  /// - Parameter isFutex: Whether the kernel may end the sleep at any time.
  func sleep(on address: UInt, until deadline: UInt64?, isFutex: Bool = false) -> Futex.Outcome {
    let me = running!
    endOvertaking()
    if deadline != nil {
      // A look at the clock.
      order(clockStep(.read))
    }
    if let deadline, deadline <= elapsed { return .timedOut }
    if isFutex && mayWakeForNothing && wakesForNothing() {
      // Others go first for as long as the search likes.
      me.history = History.mix(me.history, 3)
      stop()
      return .lookAgain
    }
    block(on: address, until: deadline)
    return me.timedOut ? .timedOut : .lookAgain
  }

  /// The running coroutine needs a processor for a while, in which time passes for the others.
  func compute(_ nanoseconds: UInt64) {
    endOvertaking()
    order(clockStep(.read))
    running!.computes = true
    block(on: 0, until: elapsed + nanoseconds)
    running!.computes = false
  }

  private func block(on address: UInt, until deadline: UInt64?) {
    let me = running!
    me.timedOut = false
    me.status = .asleep(address: address, until: deadline)
    partialOrder?.sleeps(me.id)
    sleepers[address, default: []].append(me)
    stop()
  }

  private func wakesForNothing() -> Bool {
    // A step of its own: the look at the word may have used an older store.
    countStep()
    guard isExploring, policy.wantsStore(at: steps) else { return false }
    guard let index = policy.chooseStore(among: 2, of: running!.id, at: steps, state: { self.stateHash })
    else {
      fail(.nondeterministic, "step \(steps) may wake for nothing")
    }
    if index != 0 {
      choices.append(.store(index, step: steps))
      remark("wakes for nothing")
    }
    return index != 0
  }

  func wake(on address: UInt, count: Int) {
    endOvertaking()
    wakers[address, default: VectorClock()].join(running!.clock)
    if ModelFaults.dropsWakes { return }
    for left in stride(from: count, to: 0, by: -1) {
      guard let asleep = sleepers[address], !asleep.isEmpty else { return }
      let next = asleep[left < asleep.count ? chooseSleeper(asleep.map(\.id)) : 0]
      sleepers[address]!.removeAll { $0 === next }
      next.status = .ready
      #if LEDGER
        Ledger.wake(next.id)
      #endif
      partialOrder?.wakes(next.id)
      next.history = History.mix(next.history, running!.history)
    }
  }

  /// Which of several sleepers a wake-up picks. A free choice, as that of the next coroutine.
  private func chooseSleeper(_ ids: [Int]) -> Int {
    guard isExploring else { return 0 }
    decisions += 1
    // Unlike at a choice of the next coroutine, the running one is in the middle of its step.
    let state = { History.mix(self.stateHash, UInt64(self.running!.id)) }
    guard let index = policy.choose(ids, continuing: false, at: decisions, state: state) else {
      fail(.nondeterministic, "the sleepers \(ids) differ from those of the earlier execution")
    }
    if index != 0 { choices.append(.thread(ids[index], decision: decisions)) }
    return index
  }

  // MARK: - The clock

  private func clockStep(_ kind: Step.Kind) -> Step {
    let none = WordBits(low: 0, high: 0)
    return Step(kind, at: 8, was: none, is: none, file: #fileID, line: #line)
  }

  func lookAtClock() {
    guard clockMoves, isExecuting else { return }
    arrive()
    note(clockStep(.read))
  }

  /// Lets time pass while others can run.
  func advance(_ nanoseconds: UInt64) {
    arrive()
    endOvertaking()
    note(clockStep(.write))
    partialOrder?.touchAll()
    changes += 1
    reach(elapsed + nanoseconds)
  }

  /// Sets the wall clock forwards or backwards.
  func setWall(by nanoseconds: Int64) {
    arrive()
    endOvertaking()
    note(clockStep(.write))
    partialOrder?.touchAll()
    wallOffset += nanoseconds
    ModelKernel.ring(wallWasSet: true)
  }

  func pause() {
    guard isExecuting, let me = running else { return }
    #if LEDGER
      // A pause takes about as long as a step, and spinning its real number of rounds.
      if isExploring {
        Ledger.step(isPause: true)
        return arrive()
      }
    #endif
    endOvertaking()
    me.history = History.mix(me.history, 1)
    partialOrder?.pause()
    let seen = changes - me.ownChanges
    // If a word has changed since the last pause, the coroutine may look again at once.
    me.status = isExploring && seen > me.changesSeen ? .ready : .paused
    me.changesSeen = seen
    stop()
  }

  func isAsleep(_ id: Int) -> Bool? {
    let me = running!
    endOvertaking()
    partialOrder?.touch(UInt64(id), .status, isWrite: false)
    // The answer depends on all earlier steps of all coroutines, so it follows them.
    me.history = History.mix(me.history, stateHash)
    guard coroutines.indices.contains(id) else { return nil }
    if case .asleep = coroutines[id].status { return !coroutines[id].computes }
    return coroutines[id].status == .finished ? nil : false
  }

  // MARK: - Threads

  /// Whether a thread of the scenario has not finished.
  var hasUnfinishedThreads: Bool {
    coroutines.contains { $0.id != 0 && !$0.isBackground && $0.status != .finished }
  }

  @discardableResult
  func spawn(_ name: String, isBackground: Bool, _ body: @escaping () -> Void) -> Int {
    let me = running!
    endOvertaking()
    let child = add(name, isBackground: isBackground, body)
    partialOrder?.made(child.id, by: me.id)
    me.history = History.mix(me.history, UInt64(child.id))
    child.history = History.mix(child.history, me.history)
    child.clock.join(me.clock)
    me.clock[me.id] += 1
    if isTracing { trace.append("\(me.title): spawns \(child.title)") }
    return child.id
  }

  /// A fork: the running coroutine and the scenario's body go on alone.
  func endOthers() {
    let me = running!
    endOvertaking()
    // The child would never come to the early stores of others.
    if nextToProve != nil { fail(.impossible, "a fork before an early store has been made") }
    partialOrder?.endsOthers()
    me.history = History.mix(me.history, stateHash)
    for coroutine in coroutines where coroutine !== me && coroutine.id != 0 {
      coroutine.status = .finished
      partialOrder?.sleeps(coroutine.id)
      // The child's memory is a copy of all that has been done.
      me.clock.join(coroutine.clock)
    }
    sleepers = [:]
  }

  /// Runs all coroutines until the threads have finished and no background coroutine can continue.
  func join() {
    let me = running!
    if me.id != 0 || isExploring {
      fail(.trap, "call Model.run() from the scenario's own body, one call at a time")
    }
    isExploring = true
    partialOrder?.setActive(true)
    me.status = .joining
    stop()
    isExploring = false
    partialOrder?.setActive(false)
    for coroutine in coroutines {
      me.clock.join(coroutine.clock)
      me.history = History.mix(me.history, coroutine.history)
    }
  }
}

/// The entry point of every coroutine.
private func enterCoroutine(_ argument: UnsafeMutableRawPointer?) -> OpaquePointer {
  // SAFETY: the argument is the coroutine, which its scheduler keeps alive.
  let coroutine = Unmanaged<Coroutine>.fromOpaque(argument!).takeUnretainedValue()
  coroutine.body?()
  return Scheduler.current!.finish()
}
