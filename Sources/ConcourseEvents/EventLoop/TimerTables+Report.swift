// Reports due timers, and sets the timers of the kernel for the next.

extension TimerTables {
  /// How long a clock rests after a report: a fifth of the lateness that the contract allows.
  private static let slack: UInt64 = 200_000

  /// Reports due timers in the order of their times, and sets the kernel's timers for the next.
  /// - Returns: whether a thread that waits for events must go on, since due timers may be left.
  @discardableResult
  func reportDue(_ poller: Poller?) -> Bool {
    guard let begun = requests.pointee.begin() else { return false }
    var seen = begun
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

  func arm(_ poller: Poller, isWall: Bool, at time: UInt64) -> Bool {
    let isArmed = kernelTimer(isWall: isWall).pointee.arm(poller, at: time)
    if !isArmed { noteRefusal() }
    return isArmed
  }

  func noteRefusal() {
    // ORDERING: sequentially consistent; see `armAgain`.
    isRefused.store(true, ordering: .sequentiallyConsistent)
  }

  /// The earliest time of a clock, `.max` for none.
  func first(isWall: Bool) -> UInt64 {
    var first = UInt64.max
    for place in tables.indices { first = min(first, self.first(at: place, isWall: isWall)) }
    return first
  }

  /// The earliest time of a clock in a table, in the total order of the thread that reports (see README.md).
  func first(at place: Int, isWall: Bool) -> UInt64 {
    let word = isWall ? earliest[place].wall : earliest[place].uptime
    // ORDERING: sequentially consistent; closes the race of the store in `TimerTable.insert`, then the look in
    // `KernelTimer.arm`, against `KernelTimer.hasFired`, then this look. Acquiring, too: see `hasPassed`.
    return word.pointee.load(ordering: .sequentiallyConsistent)
  }

  /// Moves the earliest due entries of several tables into `due`, in the order of their times. What comes after an entry
  /// that is left in a table goes back. So does what was set after the call began, if a timer as early is in a table now:
  /// that may have been set first, into a table that had been read.
  private func merge(_ now: UInt64, isWall: Bool, into due: inout [TimerHeap.Entry]) {
    let beginning = Clock.uptime()
    let atMost = max(Self.mostReported / tables.count, 1)
    var taken: [(entry: TimerHeap.Entry, place: Int)] = []
    var left: TimerHeap.Entry?
    var places: [(first: UInt64, place: Int)] = []
    for place in tables.indices {
      let first = first(at: place, isWall: isWall)
      if first <= now { places.append((first, place)) }
    }
    // The earliest first: then little goes back.
    places.sort { $0.first < $1.first }
    for (first, place) in places {
      let last = min(now, left?.time ?? .max)
      if first > last { break }
      table(place) { table in
        var some: [TimerHeap.Entry] = []
        let next = table.lock.withLock {
          defer { table.mark(some) }
          return table.take(last, isWall: isWall, atMost: atMost, into: &some)
        }
        for entry in some { taken.append((entry, place)) }
        if let next, left.map({ TimerHeap.Entry.isBefore(next, $0) }) ?? true { left = next }
      }
    }
    taken.sort { TimerHeap.Entry.isBefore($0.entry, $1.entry) }
    let first = first(isWall: isWall)
    for (entry, place) in taken {
      let isFirst =
        (entry.time < first || entry.sequence <= beginning)
        && left.map { TimerHeap.Entry.isBefore(entry, $0) } ?? true
      if isFirst || !table(place, { restore(entry, isWall: isWall, to: $0, at: place) }) { due.append(entry) }
    }
  }

  /// - Returns: false if it is a timer that a thread has set or cancelled meanwhile. To that thread it was reported
  ///   already, so it is reported now.
  private func restore(
    _ entry: TimerHeap.Entry, isWall: Bool, to table: TimerTable, at place: Int
  ) -> Bool {
    table.lock.withLock {
      if case .timer(let timer) = entry.payload {
        let isLeft = timer._withUnsafeGuaranteedRef { timer in
          // The lock of another table guards the fields of a timer that has moved.
          guard timer.home == place else { return false }
          PlainMemory.writes(beside: timer.homePlace)
          return timer.isTaken
        }
        if !isLeft { return false }
      }
      table.restore(entry, isWall: isWall)
      return true
    }
  }
}

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

/// The setting of the kernel's timer of one clock: the earliest time of all tables, or an earlier one.
struct KernelTimer: ~Copyable {
  let isWall: Bool
  /// Taken to set the kernel's timer, so that a later time never replaces an earlier one.
  private let lock = Lock(.kernelTimer)
  /// The time that the kernel's timer is set to, or is about to be by the holder of the lock; `.max` if it is not set,
  /// or has fired and the thread that reports has not looked at the tables since.
  private let armed = Atomic<UInt64>(.max)

  init(isWall: Bool) { self.isWall = isWall }

  var now: UInt64 { isWall ? Clock.wall() : Clock.uptime() }

  /// Called before a thread looks for due timers. The kernel's timer has fired, or the wall clock was set: either way it
  /// must be set again.
  func hasFired() {
    // ORDERING: sequentially consistent; see `TimerTables.first`.
    armed.store(.max, ordering: .sequentiallyConsistent)
  }

  /// Sets the kernel's timer, unless the kernel's timer fires sooner and will be set then. If timers come and go, each
  /// later than the last, one needless wake-up is cheaper than a system call for each.
  /// - Returns: false if the kernel refuses.
  func arm(_ poller: Poller, at time: UInt64) -> Bool {
    // ORDERING: sequentially consistent; see `TimerTables.first`.
    guard time < armed.load(ordering: .sequentiallyConsistent) else { return true }
    return lock.withLock {
      // ORDERING: relaxed; if `hasFired` comes later, the thread that reports sets the timer, too.
      time >= armed.load(ordering: .relaxed) || set(poller, time)
    }
  }

  /// Makes the kernel's timer fire now.
  func armAtOnce(_ poller: Poller) -> Bool { lock.withLock { set(poller, 1) } }

  /// Call under the lock.
  private func set(_ poller: Poller, _ time: UInt64) -> Bool {
    // ORDERING: relaxed; publishes nothing. Before the system call: the timer may fire at once, and the thread that
    // reports then must not find that its `hasFired` is followed by this store.
    armed.store(time, ordering: .relaxed)
    if poller.arm(isWall: isWall, at: max(time, 1)) { return true }
    // ORDERING: sequentially consistent; a thread that has set a timer and found the time that the kernel has refused
    // comes before this, and so before the look at the tables in `TimerTables.armAgain`.
    armed.store(.max, ordering: .sequentiallyConsistent)
    return false
  }
}
