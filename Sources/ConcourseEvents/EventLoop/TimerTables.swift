/// The timers of the process, in tables, and the kernel's timers.
///
/// With one shard there is one table. With several, each has eight, as many as processors: a thread sets timers in one of
/// those of its shard, each in the next, so few threads share a lock. A thread that waits for events reports what is due in all
/// tables. README.md has the argument that no timer is missed.
final class TimerTables {
  let tables: UnsafeMutableBufferPointer<Unmanaged<TimerTable>>
  private let perShard: Int
  /// The earliest times of the tables. Those of a shard are beside one another, so that they are quick to read.
  let earliest: UnsafeMutableBufferPointer<TimerTable.Earliest>
  /// How many threads of each shard have been given a table.
  private let turns: UnsafeMutablePointer<Atomic<UInt64>>
  let uptime = SeparateLines.allocate(KernelTimer(isWall: false))
  private let wall = SeparateLines.allocate(KernelTimer(isWall: true))
  let requests = SeparateLines.allocate(ReportRequests())
  /// Whether the kernel has refused to set a timer. The next timer that is set then makes up for it, or the monitor,
  /// which asks again each millisecond.
  let isRefused = Atomic<Bool>(false)

  init(shards: Int) {
    perShard = shards == 1 ? 1 : Self.mostPerShard
    tables = .allocate(capacity: shards * perShard)
    earliest = .allocate(capacity: shards * perShard)
    turns = SeparateLines.allocateWords(shards)
    for shard in 0..<shards {
      let words = SeparateLines.allocateWords(2 * perShard)
      for index in 0..<perShard {
        let place = shard * perShard + index
        earliest.initializeElement(at: place, to: (words + index, words + perShard + index))
        tables.initializeElement(at: place, to: .passRetained(TimerTable(earliest[place])))
      }
    }
  }

  deinit {
    for table in tables { table.release() }
    for shard in 0..<shards {
      SeparateLines.deallocate(earliest[shard * perShard].uptime, count: 2 * perShard)
    }
    SeparateLines.deallocate(turns, count: shards)
    tables.deallocate()
    earliest.deallocate()
    SeparateLines.deallocate(uptime)
    SeparateLines.deallocate(wall)
    SeparateLines.deallocate(requests)
  }

  private static var mostPerShard: Int { Int(Tuning.value(8, inModel: 1)) }

  /// The number of shards that there are tables for.
  var shards: Int { tables.count / perShard }

  /// The place of the table in which the calling thread sets timers.
  var own: Int {
    if tables.count == 1 { return 0 }
    let shard = Runtime.shardOfThread
    let state = CurrentThread.state
    if state.pointee.timer_table == 0 {
      // ORDERING: relaxed; only spreads the threads.
      let turn = turns[shard].wrappingAdd(1, ordering: .relaxed).oldValue
      state.pointee.timer_table = UInt8(turn % UInt64(perShard)) + 1
    }
    return shard * perShard + Int(state.pointee.timer_table) - 1
  }

  func table<Result>(_ place: Int, _ body: (TimerTable) -> Result) -> Result {
    tables[place]._withUnsafeGuaranteedRef(body)
  }

  func kernelTimer(isWall: Bool) -> UnsafeMutablePointer<KernelTimer> { isWall ? wall : uptime }

  /// Whether a time has passed and all earlier timers have been reported, so that there is nothing to wait for. False
  /// in a forked child, where no thread reports.
  func hasPassed(_ time: UInt64, isWall: Bool) -> Bool {
    guard Clock.hasPassed(time, isWall: isWall), !Process.isForkedChild else { return false }
    // A report begins before it removes due timers, and it ends after it has reported them or put them back. So none has
    // removed an earlier timer if none is going on before and after the look at the tables, and none has ended meanwhile.
    guard let before = requests.pointee.unlessReporting, first(isWall: isWall) > time else { return false }
    return requests.pointee.unlessReporting == before
  }

  // MARK: Setting

  /// Submits `node` to `queue` at a time. The submission cannot be cancelled.
  func submit(_ node: NodePointer, to queue: DispatchQueue, at time: UInt64, isWall: Bool) {
    let poller = EventLoop.shared.begin()
    table(own) { table in
      table.lock.lock()
      insert(time, isWall: isWall, .submission(node, .passRetained(queue)), into: table, poller)
    }
  }

  /// Sets a timer, in place of an earlier setting.
  func set(_ timer: LoopTimer, to window: TimerWindow) {
    guard window.clock != .never else {
      _ = cancel(timer)
      return
    }
    let poller = EventLoop.shared.begin()
    let isWall = window.clock == .wall
    let (place, wasSet) = lockTable(for: timer)
    table(place) { table in
      // The heap's reference, which it already has if the timer was set.
      let payload = wasSet ? Unmanaged.passUnretained(timer) : .passRetained(timer)
      timer.isWall = isWall
      // If the window has begun, the timer is due. Without width the clock need not be read.
      let isDue =
        window.latest > window.earliest
        && window.earliest <= kernelTimer(isWall: isWall).pointee.now
      let time = isDue ? window.earliest : window.chosen
      insert(time, isWall: isWall, .timer(payload), into: table, poller)
    }
  }

  /// Locks the table in which a timer is to be set, and removes the timer from where it is set.
  private func lockTable(for timer: LoopTimer) -> (place: Int, wasSet: Bool) {
    if tables.count == 1 {
      let wasSet = table(0) { table in
        table.lock.lock()
        return table.dequeue(timer)
      }
      return (0, wasSet)
    }
    let own = self.own
    var wasSet = false
    var mayMove = true
    while true {
      let home = timer.home(orElse: own)
      let isLocked = table(home) { table in
        table.lock.lock()
        if timer.home == home {
          if table.dequeue(timer) {
            // The references of both heaps, if another thread has set it since it left the first.
            if wasSet { Unmanaged.passUnretained(timer).release() }
            wasSet = true
          }
          // It stays in its shard. Another thread that sets it may take it back: then it stays where it is.
          if home / perShard == own / perShard || !mayMove { return true }
          timer.home = own
          mayMove = false
        }
        table.lock.unlock()
        return false
      }
      if isLocked { return (home, wasSet) }
    }
  }

  func cancel(_ timer: LoopTimer) -> Bool {
    while true {
      let home = tables.count == 1 ? 0 : timer.home
      // It has never been set.
      if home >= tables.count { return false }
      let wasSet = table(home) { table in
        table.lock.withLock { () -> Bool? in
          guard tables.count == 1 || timer.home == home else { return nil }
          return table.dequeue(timer)
        }
      }
      guard let wasSet else { continue }
      // The kernel's timer stays set: at most one needless wake-up.
      if wasSet { Unmanaged.passUnretained(timer).release() }
      return wasSet
    }
  }

  /// Call under the lock of the table; releases it.
  private func insert(
    _ time: UInt64, isWall: Bool, _ payload: TimerHeap.Payload, into table: TimerTable, _ known: Poller?
  ) {
    // In one table timers have numbers. In several, the clock orders those that happen one after the other.
    let age = tables.count == 1 ? 0 : Clock.uptime()
    // ORDERING: relaxed; the monitor asks again if this thread does not see it.
    let wasRefused = isRefused.load(ordering: .relaxed)
    let isEarliest = table.insert(time, isWall: isWall, payload, age: age)
    // An event queue made meanwhile has been armed without this timer, and its thread does not look at `nudges`.
    let poller = known ?? (isEarliest ? EventLoop.shared.pollerInTotalOrder : EventLoop.shared.pollerIfAny)
    var isArmed = true
    // Under the lock: who finds this timer in the table, and sets a later one, relies on it.
    if isEarliest, let poller { isArmed = arm(poller, isWall: isWall, at: time) }
    table.lock.unlock()
    if !isArmed || wasRefused { makeUpForRefusal(poller, hasTried: !isArmed) }
    if isEarliest && poller == nil { EventLoop.shared.nudge() }
  }

  // MARK: The kernel's timers

  @inline(never)
  private func makeUpForRefusal(_ poller: Poller?, hasTried: Bool) {
    if !hasTried, let poller, armAgain(poller) { return }
    Runtime.shared.monitor.startEventLoop()
  }

  /// Sets the kernel's timers if the kernel has refused to set one.
  /// - Returns: false if the kernel refuses again.
  func armAgain(_ poller: Poller) -> Bool {
    // ORDERING: relaxed; the monitor, which has been started after the store, sees it.
    guard isRefused.load(ordering: .relaxed) else { return true }
    // ORDERING: sequentially consistent; closes the race of the store in `TimerTable.insert`, then that in `noteRefusal`,
    // against this store, then the look at the tables: either the look sees the timer, or the refusal stays noted.
    isRefused.store(false, ordering: .sequentiallyConsistent)
    // Both: the uptime's timer may have been meant to fire for a due timer of the wall clock. If the earliest timer has
    // been cancelled since, there may be nothing to set.
    for isWall in [false, true] {
      let time = first(isWall: isWall)
      if time != .max { _ = arm(poller, isWall: isWall, at: time) }
    }
    // ORDERING: relaxed; as above.
    return !isRefused.load(ordering: .relaxed)
  }

  /// When to look next, for a thread that sleeps without the kernel's timers.
  func nextLook() -> Deadline {
    let (first, firstOnWall) = (first(isWall: false), first(isWall: true))
    guard first != .max || firstOnWall != .max else { return .never }
    // The wall clock may be set at any time: look at it at least every second.
    guard firstOnWall != .max else { return .uptime(first) }
    let now = Clock.wall()
    let untilWall = firstOnWall <= now ? 0 : min(firstOnWall - now, 1_000_000_000)
    return .uptime(min(first, Clock.uptime() &+ untilWall))
  }

  /// How many timers are set.
  var count: Int {
    tables.reduce(0) { sum, table in
      sum + table._withUnsafeGuaranteedRef { table in table.lock.withLock { table.count } }
    }
  }
}

// SAFETY: atomics; the rest is constant.
extension TimerTables: @unchecked Sendable {}

/// Memory that shares no cache line, and no pair of lines that processors fetch together, with anything else.
enum SeparateLines {
  private static var size: Int { 128 }

  static func allocate<Value: ~Copyable>(_ value: consuming Value) -> UnsafeMutablePointer<Value> {
    let bytes = (MemoryLayout<Value>.size + size - 1) / size * size
    let memory = UnsafeMutableRawPointer.allocate(byteCount: bytes, alignment: size)
      .bindMemory(to: Value.self, capacity: 1)
    memory.initialize(to: value)
    return memory
  }

  /// - Returns: words that share lines with one another only, each with the highest number.
  static func allocateWords(_ count: Int) -> UnsafeMutablePointer<Atomic<UInt64>> {
    let bytes = (MemoryLayout<Atomic<UInt64>>.stride * count + size - 1) / size * size
    let words = UnsafeMutableRawPointer.allocate(byteCount: bytes, alignment: size)
      .bindMemory(to: Atomic<UInt64>.self, capacity: count)
    for index in 0..<count { (words + index).initialize(to: Atomic<UInt64>(.max)) }
    return words
  }

  static func deallocate<Value: ~Copyable>(_ memory: UnsafeMutablePointer<Value>, count: Int = 1) {
    memory.deinitialize(count: count)
    memory.deallocate()
  }
}
