/// The timers of the process, in tables, and the kernel's timers.
///
/// With one shard there is one table. With several, each has eight, as many as processors: a thread sets timers in one of
/// those of its shard, by its id, so threads that set timers hardly meet at a lock. A thread that waits for events reports
/// what is due in all tables. README.md has the argument that no timer is missed.
final class TimerTables {
  let tables: UnsafeMutableBufferPointer<Unmanaged<TimerTable>>
  private let perShard: Int
  /// The earliest times of the tables (`TimerTable.earliest`). Those of a shard are beside one another, so that they are
  /// quick to read; they change less often than timers are set.
  private let words: UnsafeMutableBufferPointer<UnsafeMutablePointer<Atomic<UInt64>>>
  private let uptime = SeparateLines.allocate(KernelTimer(isWall: false))
  private let wall = SeparateLines.allocate(KernelTimer(isWall: true))
  private let requests = SeparateLines.allocate(ReportRequests())
  /// Whether the kernel has refused to set a timer. The next timer that is set then makes up for it, or the monitor,
  /// which asks again each millisecond.
  private let isRefused = Atomic<Bool>(false)

  /// How long a clock rests after a report: a fifth of the lateness that the contract allows.
  private static let slack: UInt64 = 200_000

  init(shards: Int) {
    perShard = shards == 1 ? 1 : Self.mostPerShard
    tables = .allocate(capacity: shards * perShard)
    words = .allocate(capacity: shards)
    for shard in 0..<shards {
      let words = SeparateLines.allocateWords(2 * perShard)
      self.words.initializeElement(at: shard, to: words)
      for index in 0..<perShard {
        let table = TimerTable(earliest: words + index, onWall: words + perShard + index)
        tables.initializeElement(at: shard * perShard + index, to: .passRetained(table))
      }
    }
  }

  deinit {
    for table in tables { table.release() }
    for words in words { SeparateLines.deallocate(words, count: 2 * perShard) }
    tables.deallocate()
    words.deallocate()
    SeparateLines.deallocate(uptime)
    SeparateLines.deallocate(wall)
    SeparateLines.deallocate(requests)
  }

  private static var mostPerShard: Int { Int(Tuning.value(8, inModel: 1)) }

  /// The number of shards that there are tables for.
  var shards: Int { words.count }

  /// The place of the table in which the calling thread sets timers.
  private var own: Int {
    tables.count == 1 ? 0 : Runtime.shardOfThread * perShard + Int(CurrentThread.id) % perShard
  }

  private func table<Result>(_ place: Int, _ body: (TimerTable) -> Result) -> Result {
    tables[place]._withUnsafeGuaranteedRef(body)
  }

  private func kernelTimer(isWall: Bool) -> UnsafeMutablePointer<KernelTimer> { isWall ? wall : uptime }

  /// The earliest time of a clock, `.max` for none.
  private func first(isWall: Bool) -> UInt64 {
    var first = UInt64.max
    for table in tables { first = min(first, table._withUnsafeGuaranteedRef { $0.first(isWall: isWall) }) }
    return first
  }

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
      let home = timer.home
      let isLocked = table(home) { table in
        table.lock.lock()
        if timer.home == home {
          if table.dequeue(timer) { wasSet = true }
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

  private func arm(_ poller: Poller, isWall: Bool, at time: UInt64) -> Bool {
    let isArmed = kernelTimer(isWall: isWall).pointee.arm(poller, at: time)
    if !isArmed { noteRefusal() }
    return isArmed
  }

  private func noteRefusal() {
    // ORDERING: sequentially consistent; see `armAgain`.
    isRefused.store(true, ordering: .sequentiallyConsistent)
  }

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

  // MARK: Reporting

  /// Reports due timers in the order of their times, and sets the kernel's timers for the next.
  /// - Returns: whether a thread that waits for events must go on, since due timers may be left.
  @discardableResult
  func reportDue(_ poller: Poller?) -> Bool {
    guard var seen = requests.pointee.begin() else { return false }
    var reported = 0
    while true {
      let (count, areLeft) = reportSome(poller)
      reported += count
      if !areLeft && requests.pointee.end(&seen) { return false }
      if reported >= Self.mostReported, let poller {
        requests.pointee.giveUp()
        if !uptime.pointee.armAtOnce(poller) {
          noteRefusal()
          Runtime.shared.monitor.startEventLoop()
        }
        return true
      }
    }
  }

  /// The most timers of a clock that a thread reports before it, or another, looks for other events. A worker that
  /// reports counts as searching, so until then no other is woken, and the worker does not run what it has submitted.
  static var mostReported: Int { Int(Tuning.value(4096, inModel: 1)) }

  /// Reports the earliest due timers.
  /// - Returns: how many, and whether due timers are left.
  private func reportSome(_ poller: Poller?) -> (count: Int, areLeft: Bool) {
    var due: [TimerHeap.Entry] = []
    var areLeft = collect(isWall: false, into: &due, poller)
    if collect(isWall: true, into: &due, poller) { areLeft = true }
    for entry in due {
      switch entry.payload {
      case .submission(let node, let queue):
        if Recording.isOn { Recording.timerFired(queue.toOpaque()) }
        queue._withUnsafeGuaranteedRef { $0.submit(node) }
        queue.release()
      case .timer(let timer):
        if Recording.isOn { Recording.timerFired(timer.toOpaque()) }
        timer._withUnsafeGuaranteedRef { $0.fire() }
        timer.release()
      }
    }
    return (due.count, areLeft)
  }

  /// Moves the earliest due entries of a clock into `due`, and sets the kernel's timer for the next unless that is due,
  /// too.
  /// - Returns: whether due entries are left.
  private func collect(isWall: Bool, into due: inout [TimerHeap.Entry], _ poller: Poller?) -> Bool {
    let kernelTimer = kernelTimer(isWall: isWall)
    kernelTimer.pointee.hasFired()
    var next = first(isWall: isWall)
    guard next != .max else { return false }
    let now = kernelTimer.pointee.now
    if next <= now {
      if tables.count == 1 {
        table(0) { table in
          _ = table.lock.withLock { table.take(now, isWall: isWall, atMost: Self.mostReported, into: &due) }
        }
      } else {
        merge(now, isWall: isWall, into: &due)
      }
      next = first(isWall: isWall)
      guard next != .max else { return false }
      if next <= now { return true }
    }
    guard let poller else { return false }
    // A dense stream of timers would otherwise wake a thread for each of them.
    if !arm(poller, isWall: isWall, at: due.isEmpty ? next : max(next, now &+ Self.slack)) {
      Runtime.shared.monitor.startEventLoop()
    }
    return false
  }

  /// Moves the earliest due entries of several tables into `due`, in the order of their times. What may not be the
  /// earliest, because its table was read before another had an earlier timer, or more of another are due, goes back.
  private func merge(_ now: UInt64, isWall: Bool, into due: inout [TimerHeap.Entry]) {
    let atMost = max(Self.mostReported / tables.count, 1)
    var taken: [(entry: TimerHeap.Entry, place: Int)] = []
    var left: TimerHeap.Entry?
    for place in tables.indices {
      table(place) { table in
        guard table.first(isWall: isWall) <= now else { return }
        var some: [TimerHeap.Entry] = []
        let next = table.lock.withLock { table.take(now, isWall: isWall, atMost: atMost, into: &some) }
        for entry in some { taken.append((entry, place)) }
        if let next, left.map({ TimerHeap.Entry.isBefore(next, $0) }) ?? true { left = next }
      }
    }
    taken.sort { TimerHeap.Entry.isBefore($0.entry, $1.entry) }
    let first = first(isWall: isWall)
    for (entry, place) in taken {
      if entry.time <= first && left.map({ TimerHeap.Entry.isBefore(entry, $0) }) ?? true {
        due.append(entry)
      } else {
        table(place) { restore(entry, isWall: isWall, to: $0, at: place) }
      }
    }
  }

  private func restore(_ entry: TimerHeap.Entry, isWall: Bool, to table: TimerTable, at place: Int) {
    let replaced = table.lock.withLock { () -> Unmanaged<LoopTimer>? in
      if case .timer(let timer) = entry.payload,
        timer._withUnsafeGuaranteedRef({ $0.place != nil || $0.home != place })
      {
        return timer
      }
      table.restore(entry, isWall: isWall)
      return nil
    }
    // It has been set again meanwhile.
    replaced?.release()
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

/// Requests to report due timers since a thread began to report; none while none reports. One thread reports at a time,
/// to keep the order of the times, and also serves requests that come meanwhile.
struct ReportRequests: ~Copyable {
  /// The requests, and in the upper half the reports that have ended.
  private let word = Atomic<UInt64>(0)
  private static let ended: UInt64 = 1 << 32

  private static func count(_ value: UInt64) -> UInt64 { value & (ended - 1) }

  /// The reports that have ended; nil if one is going on.
  var unlessReporting: UInt64? {
    // ORDERING: acquiring; pairs with the operations that end a report, and is not moved before the look at the tables
    // that follows, or precedes, as that acquires too.
    let value = word.load(ordering: .acquiring)
    return Self.count(value) == 0 ? value : nil
  }

  /// - Returns: the requests, if the calling thread must report; nil if another does.
  func begin() -> UInt64? {
    // ORDERING: acquiring and releasing; the reporting thread sees what came before each request, and what the last
    // reporting thread did.
    let value = word.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue
    return Self.count(value) == 1 ? value : nil
  }

  /// Ends the report, unless there was another request.
  /// - Parameter seen: the requests that the caller has served; changed to those that it must serve.
  func end(_ seen: inout UInt64) -> Bool {
    // ORDERING: as above.
    let (done, now) = word.compareExchange(
      expected: seen, desired: seen - Self.count(seen) &+ Self.ended, ordering: .acquiringAndReleasing)
    seen = now
    return done
  }

  /// Ends the report, whatever was requested.
  func giveUp() {
    // Only requests come meanwhile, and they do not change the upper half.
    // ORDERING: relaxed; the caller has written it.
    let value = word.load(ordering: .relaxed)
    // ORDERING: as above.
    _ = word.exchange(value - Self.count(value) &+ Self.ended, ordering: .acquiringAndReleasing)
  }
}
