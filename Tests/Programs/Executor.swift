// Runs a program on the runtime that this folder is compiled against.

import Glibc

#if CONCOURSE
  import ConcourseEvents
  import ConcourseRuntime
#else
  import Dispatch
#endif

/// Runs one program, and notes what happens.
final class Executor: @unchecked Sendable {
  // SAFETY (@unchecked Sendable): `log`, `workItems` and the counters are GUARDED BY `mutex`; the objects are
  // made before the first thread starts and dropped after the last event.
  let program: Program
  let fault: Fault?
  /// How long each item stays between its begin and its end, in microseconds.
  private let pause: UInt32
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let changed = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
  private(set) var log = Log()
  private var workItems: [Int: DispatchWorkItem] = [:]
  private var threadsLeft = 0
  private var sentinelsLeft = 0
  private var activity = 0
  /// Whether no item may begin any more. A cancelled one may begin late: nothing waits for it.
  private var isClosed = false

  private var queues: [DispatchQueue] = []
  private var groups: [DispatchGroup] = []
  private var locks: [DispatchSemaphore] = []
  private var gates: [DispatchSemaphore] = []
  private var items: [DispatchWorkItem] = []
  private var sources: [DispatchSource] = []
  private static let place = DispatchSpecificKey<Int>()

  private init(_ program: Program, _ fault: Fault?, _ pause: UInt32) {
    self.program = program
    self.fault = fault
    self.pause = pause
    pthread_mutex_init(mutex, nil)
    pthread_cond_init(changed, nil)
  }

  deinit {
    pthread_cond_destroy(changed)
    changed.deallocate()
    pthread_mutex_destroy(mutex)
    mutex.deallocate()
  }

  /// Runs a program and judges its log. Returns what was wrong; empty if nothing was.
  /// - Parameters:
  ///   - patience: after so many seconds without an event, what is owed counts as lost.
  ///   - pause: how long each item stays between its begin and its end, in microseconds.
  static func run(
    _ program: Program, fault: Fault? = nil, patience: Int = 20, pause: UInt32 = 0
  ) -> [String] {
    let executor = Executor(program, fault, pause)
    executor.makeObjects()
    executor.startThreads()
    for (number, queue) in program.queues.enumerated() where queue.isInactive {
      sched_yield()
      executor.note(.activated, number)
      executor.queues[number].activate()
    }
    let isDone =
      executor.comesToRest(patience) && executor.passesAllQueues(patience) && executor.closes(patience)
      && executor.retiresSources(patience)
    let log = executor.takeLog()
    var wrong = Contract.judge(program, log)
    if isDone {
      executor.dropObjects()
    } else {
      // Released objects in use would trap.
      _ = Unmanaged.passRetained(executor)
      let owed = Contract.owed(program, log)
      wrong.append(
        "never came: \(owed.isEmpty ? "the end of a thread or of a queue" : owed.joined(separator: ", "))")
    }
    return wrong
  }

  // MARK: - Events

  private func locked<Result>(_ body: () -> Result) -> Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return body()
  }

  /// - Returns: false for the begin of an item when none may begin any more.
  @discardableResult
  func note(_ what: Event.What, _ number: Int, _ value: Int = 0) -> Bool {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    let nanoseconds = time.tv_sec * 1_000_000_000 + time.tv_nsec
    let thread = Int(bitPattern: UInt(pthread_self()))
    return locked {
      if isClosed, what == .begin || what == .itemBegin { return false }
      log.events.append(Event(what: what, number: number, value: value, thread: thread, time: nanoseconds))
      activity += 1
      if threadsLeft == 0 { pthread_cond_signal(changed) }
      return true
    }
  }

  func noteResults(_ results: [[UInt8]], of number: Int) { locked { log.results[number] = results } }

  private func takeLog() -> Log { locked { log } }

  /// Waits until `isDone`, which is called with the mutex held, or until nothing has happened for `patience`
  /// seconds.
  private func waits(_ patience: Int, until isDone: () -> Bool) -> Bool {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    while !isDone() {
      let before = activity
      var deadline = timespec()
      clock_gettime(CLOCK_REALTIME, &deadline)
      deadline.tv_sec += patience
      if pthread_cond_timedwait(changed, mutex, &deadline) == ETIMEDOUT, activity == before { return false }
    }
    return true
  }

  private func comesToRest(_ patience: Int) -> Bool {
    waits(patience) { threadsLeft == 0 && Contract.owed(program, log).isEmpty }
  }

  /// Behind everything else that was submitted: what still runs, though it must not, has run then.
  private func passesAllQueues(_ patience: Int) -> Bool {
    locked { sentinelsLeft = queues.count }
    for queue in queues {
      queue.async(flags: .barrier) { [self] in
        locked {
          sentinelsLeft -= 1
          activity += 1
          pthread_cond_signal(changed)
        }
      }
    }
    return waits(patience) { sentinelsLeft == 0 }
  }

  /// What the passing of the queues has begun comes to rest, too.
  private func closes(_ patience: Int) -> Bool {
    waits(patience) {
      isClosed = Contract.owed(program, log).isEmpty
      return isClosed
    }
  }

  private func retiresSources(_ patience: Int) -> Bool {
    for (number, source) in sources.enumerated() {
      note(.retired, number)
      source.cancel()
    }
    return comesToRest(patience)
  }

  // MARK: - Objects

  private func makeObjects() {
    for (number, value) in program.queues.enumerated() {
      let queue: DispatchQueue
      var attributes: DispatchQueue.Attributes = []
      if value.kind == .concurrent || fault == .serialIsConcurrent { attributes.insert(.concurrent) }
      if value.isInactive, fault != .inactiveIsActive { attributes.insert(.initiallyInactive) }
      switch value.kind {
      case .global: queue = .global()
      #if CONCOURSE
        case .serial where value.moves, .concurrent where value.moves:
          // As `dispatch_queue_create` makes it: it may change its target while it is active.
          queue = DispatchQueue(
            cLabel: nil, isConcurrent: attributes.contains(.concurrent), qos: .unspecified,
            isInactive: attributes.contains(.initiallyInactive), target: nil, mayChangeTarget: true)
        case .workloop: queue = DispatchWorkloop(label: "workloop \(number)")
      #endif
      default:
        let target = fault == .targetIsIgnored ? nil : value.target.map { queues[$0] }
        queue = DispatchQueue(label: "queue \(number)", attributes: attributes, target: target)
      }
      if value.kind != .global { queue.setSpecific(key: Self.place, value: number + 1) }
      queues.append(queue)
    }
    groups = program.groups.map { _ in DispatchGroup() }
    locks = (0..<program.locks).map { _ in DispatchSemaphore(value: fault == .lockAdmitsTwo ? 2 : 1) }
    gates = program.gates.map { _ in DispatchSemaphore(value: 0) }
    items = program.items.enumerated().map { number, isBarrier in
      DispatchWorkItem(flags: isBarrier ? .barrier : []) { [self] in
        guard note(.itemBegin, number, DispatchQueue.getSpecific(key: Self.place) ?? 0) else { return }
        note(.itemEnd, number)
      }
    }
    for number in program.sources.indices { makeSource(number) }
  }

  private func makeSource(_ number: Int) {
    let queue = queues[program.sources[number].queue]
    let source: any DispatchSourceProtocol
    switch program.sources[number].kind {
    case .add where fault == .sumIsLast: source = DispatchSource.makeUserDataReplaceSource(queue: queue)
    case .add: source = DispatchSource.makeUserDataAddSource(queue: queue)
    case .or: source = DispatchSource.makeUserDataOrSource(queue: queue)
    case .replace: source = DispatchSource.makeUserDataReplaceSource(queue: queue)
    }
    sources.append(source as! DispatchSource)
    source.setEventHandler { [self] in
      note(.handlerBegin, number, Int(sources[number].data))
      note(.handlerEnd, number)
    }
    source.setCancelHandler { [self] in note(.cancelHandler, number) }
    source.activate()
  }

  /// Breaks the cycles through closures.
  private func dropObjects() {
    let items = locked {
      defer { workItems = [:] }
      return workItems
    }
    _ = items
    self.items = []
    sources = []
    queues = []
  }

  // MARK: - Operations

  private func startThreads() {
    threadsLeft = program.threads.count
    for operations in program.threads {
      Self.startThread { [self] in
        perform(operations)
        locked {
          threadsLeft -= 1
          activity += 1
          pthread_cond_signal(changed)
        }
      }
    }
  }

  static func startThread(_ body: @escaping () -> Void) {
    final class Box {
      let body: () -> Void
      init(_ body: @escaping () -> Void) { self.body = body }
    }
    var thread = pthread_t()
    let box = Unmanaged.passRetained(Box(body))
    let failure = pthread_create(
      &thread, nil,
      {
        // SAFETY: `box` was retained for this thread.
        Unmanaged<Box>.fromOpaque($0!).takeRetainedValue().body()
        return nil
      }, box.toOpaque())
    precondition(failure == 0, "no thread: \(failure)")
    pthread_detach(thread)
  }

  private func perform(_ operations: [Operation]) {
    var rest = operations[...]
    while let operation = rest.popFirst() {
      if fault == .orderIsSwapped, case .async(let queue, _, _, _) = operation.verb,
        case .async(queue, _, _, _)? = rest.first?.verb
      {
        let next = rest.removeFirst()
        note(.call, operation.number)
        note(.back, operation.number)
        note(.call, next.number)
        queues[queue].async { [self] in run(next) }
        queues[queue].async { [self] in run(operation) }
        note(.back, next.number)
        continue
      }
      note(.call, operation.number)
      let value = perform(operation)
      note(.back, operation.number, value)
      if case .item(_, let use) = operation.verb { finish(operation.number, use) }
    }
  }

  /// The item or the scope of an operation.
  private func run(_ operation: Operation) {
    guard note(.begin, operation.number, DispatchQueue.getSpecific(key: Self.place) ?? 0) else { return }
    perform(operation.inside)
    if operation.number % 3 == 0 { sched_yield() }
    if pause > 0 { usleep(pause) }
    note(.end, operation.number)
  }

  private func barrier(_ isBarrier: Bool) -> DispatchWorkItemFlags {
    isBarrier && fault != .barrierIsPlain ? .barrier : []
  }

  /// Makes the call or calls of an operation. Returns the result.
  private func perform(_ operation: Operation) -> Int {
    let body: @Sendable () -> Void = { [self] in run(operation) }
    let number = operation.number
    switch operation.verb {
    case .async(_, _, _, _) where fault == .itemIsLost && number % 4 == 0: break
    case .async(let queue, let isBarrier, let isEnforced, let group):
      if fault == .itemRunsTwice, number % 4 == 0 { queues[queue].async(execute: body) }
      queues[queue].async(
        group: group.map { groups[$0] }, qos: isEnforced ? .userInitiated : .unspecified,
        flags: isEnforced ? [barrier(isBarrier), .enforceQoS] : barrier(isBarrier), execute: body)
    case .sync(let queue, _) where fault == .syncReturnsEarly: queues[queue].async(execute: body)
    case .sync(let queue, true): queues[queue].sync(flags: barrier(true), execute: body)
    case .sync(let queue, false): queues[queue].sync(execute: body)
    case .asyncAndWait(let queue, let isBarrier):
      asyncAndWait(queues[queue], DispatchWorkItem(flags: barrier(isBarrier), block: body))
    case .after(let queue, let delay):
      let delay = fault == .timerIsEarly ? 0 : delay
      queues[queue].asyncAfter(deadline: .now() + .microseconds(delay), execute: body)
    case .item(let queue, let use): submit(number, queue, use, body)
    case .cancelItem(let other):
      if let item = locked({ workItems[other] }) { cancel(item, .cancelled, other) }
    case .submit(let item, let queue): queues[queue].async(execute: items[item])
    case .perform(let item): items[item].perform()
    case .cancel(let item): cancel(items[item], .itemCancelled, item)
    case .enter(let group, let queue): enter(groups[group], queues[queue], body)
    case .notify(_, let queue) where fault == .notifyIsAsync: queues[queue].async(execute: body)
    case .notify(let group, let queue): groups[group].notify(queue: queues[queue], execute: body)
    case .waitGroup(let group):
      groups[group].wait()
      return 1
    case .pollGroup(let group, let delay):
      return groups[group].wait(timeout: .now() + .microseconds(delay)) == .success ? 1 : 0
    case .locked(let lock): _ = hold(locks[lock], until: .distantFuture, body)
    case .tryLocked(let lock, let delay):
      return hold(locks[lock], until: .now() + .microseconds(delay), body) ? 1 : 0
    case .handOver(let gate, let queue):
      queues[queue].async { [gate = gates[gate]] in
        body()
        gate.signal()
      }
      if fault != .waitIsSkipped { gates[gate].wait() }
    case .suspended(let queue):
      if fault != .suspensionIsIgnored { queues[queue].suspend() }
      body()
      if fault != .suspensionIsIgnored { queues[queue].resume() }
    case .suspendedSource(let source):
      sources[source].suspend()
      body()
      sources[source].resume()
    case .merge(let source, let value):
      if fault != .mergeIsLost || number % 4 != 0 { merge(value, into: source) }
    case .cancelSource(let source): sources[source].cancel()
    case .retarget(let queue, let target): retarget(queues[queue], to: queues[target])
    case .loop(let count): loop(number, fault == .loopEndsEarly ? count - 1 : count)
    case .data: noteResults(perform(DataProgram(operation), of: number), of: number)
    // Without the data that it belonged to.
    case .step: break
    case .work(let amount):
      if amount % 4 == 0 { sched_yield() }
    }
    return 0
  }

  private func asyncAndWait(_ queue: DispatchQueue, _ item: DispatchWorkItem) {
    #if CONCOURSE
      queue.asyncAndWait(execute: item)
    #else
      // The toolchain's Swift interface lacks the call.
      queue.sync(execute: item)
    #endif
  }

  private func retarget(_ queue: DispatchQueue, to target: DispatchQueue) {
    #if CONCOURSE
      queue.setTarget(queue: target)
    #else
      // Traps on an active queue that Swift has made.
    #endif
  }

  private func enter(_ group: DispatchGroup, _ queue: DispatchQueue, _ body: @escaping @Sendable () -> Void) {
    group.enter()
    queue.async { [self] in
      if fault == .leaveIsEarly { group.leave() }
      body()
      if fault != .leaveIsEarly, fault != .leaveIsLost { group.leave() }
    }
  }

  /// - Returns: false if the time was over first.
  private func hold(_ lock: DispatchSemaphore, until deadline: DispatchTime, _ body: () -> Void) -> Bool {
    guard lock.wait(timeout: deadline) == .success else { return false }
    body()
    lock.signal()
    return true
  }

  private func loop(_ number: Int, _ count: Int) {
    DispatchQueue.concurrentPerform(iterations: count) { [self] index in
      note(.indexBegin, number, index)
      note(.indexEnd, number, index)
    }
  }

  private func submit(
    _ number: Int, _ queue: Int, _ use: Operation.ItemUse, _ body: @escaping @Sendable () -> Void
  ) {
    let item = DispatchWorkItem(flags: barrier(use.barrier), block: body)
    locked { workItems[number] = item }
    if let queue = use.notifies {
      item.notify(queue: queues[queue]) { [self] in
        note(.noteBegin, number)
        note(.noteEnd, number)
      }
    }
    if let group = use.group {
      queues[queue].async(group: groups[group], execute: item)
    } else {
      queues[queue].async(execute: item)
    }
  }

  /// What follows the submission of a work item.
  private func finish(_ number: Int, _ use: Operation.ItemUse) {
    guard let item = locked({ workItems[number] }) else { return }
    if use.cancels { cancel(item, .cancelled, number) }
    if use.waits, fault != .waitIsSkipped { item.wait() }
    if use.waits { note(.waited, number) }
  }

  private func cancel(_ item: DispatchWorkItem, _ what: Event.What, _ number: Int) {
    if fault != .cancelIsIgnored { item.cancel() }
    note(what, number, item.isCancelled || fault == .cancelIsIgnored ? 1 : 0)
  }

  private func merge(_ value: UInt, into number: Int) {
    let source = sources[number]
    switch program.sources[number].kind {
    case .add where fault == .sumIsLast: source.replace(data: value)
    case .add: source.add(data: value)
    case .or: source.or(data: value)
    case .replace: source.replace(data: value)
    }
  }
}

/// What an executor does wrong on purpose: the tests show that the reference model notices it.
enum Fault: String, CaseIterable, Sendable {
  case serialIsConcurrent, barrierIsPlain, targetIsIgnored, inactiveIsActive, suspensionIsIgnored
  case orderIsSwapped, itemIsLost, itemRunsTwice, syncReturnsEarly, timerIsEarly, loopEndsEarly
  case cancelIsIgnored, waitIsSkipped
  case leaveIsLost, leaveIsEarly, notifyIsAsync, lockAdmitsTwo
  case sumIsLast, mergeIsLost
  case subrangeIsShort, appendIsSwapped, bufferIsFreedEarly
}
