/// The timers of both clocks, and the settings of the kernel's timers.
final class TimerTable {
  /// One clock's timers.
  private struct Side {
    let isWall: Bool
    var queue = TimerQueue()
    /// The time that the kernel's timer is set to; 0 if it is not set or has fired.
    var armed: UInt64 = 0
    /// Whether the kernel refused to set it. The next timer that is set then makes up for it, or the monitor, which asks
    /// again each millisecond.
    var wasRefused = false

    /// How long a clock rests after a report: a fifth of the lateness that the contract allows.
    private static let slack: UInt64 = 200_000

    var now: UInt64 { isWall ? Clock.wall() : Clock.uptime() }

    /// Sets the kernel's timer for the earliest timer, unless the kernel's timer fires sooner and will be set then. If
    /// timers come and go, each later than the last, one needless wake-up is cheaper than a system call for each.
    /// - Parameter earliest: the earliest time to fire.
    mutating func arm(_ poller: Poller, notBefore earliest: UInt64 = 1) {
      let wanted = queue.first.map { max($0, earliest) } ?? 0
      guard wanted != armed, armed == 0 || wanted < armed else { return }
      arm(poller, at: wanted)
    }

    /// Makes the kernel's timer fire now.
    mutating func armAtOnce(_ poller: Poller) { arm(poller, at: 1) }

    mutating func armAgain(_ poller: Poller) {
      // If the earliest timer has been cancelled since, there may be nothing to set.
      wasRefused = false
      arm(poller)
    }

    private mutating func arm(_ poller: Poller, at time: UInt64) {
      wasRefused = !poller.arm(isWall: isWall, at: time)
      armed = wasRefused ? 0 : time
    }

    /// Moves the earliest due entries into `due`, and sets the kernel's timer for the next unless that is due, too.
    /// - Returns: whether due entries are left.
    mutating func collect(into due: inout [TimerHeap.Entry], _ poller: Poller?) -> Bool {
      // The kernel's timer has fired, or the wall clock was set: either way it must be set again.
      armed = 0
      guard queue.first != nil else { return false }
      let now = self.now
      let limit = due.count + TimerTable.mostReported
      while due.count < limit, let entry = queue.popDue(now) { due.append(entry) }
      guard let next = queue.first else { return false }
      if next <= now { return true }
      // A dense stream of timers would otherwise wake a thread for each of them.
      if let poller { arm(poller, notBefore: due.isEmpty ? 1 : now &+ Self.slack) }
      return false
    }
  }

  let lock = Lock(.timerTable)
  /// Requests to report due timers since a thread began to report; 0 while none reports. One thread reports at a time,
  /// to keep the order of the times, and also serves requests that come meanwhile.
  private let reportRequests = Atomic<UInt32>(0)
  // GUARDED BY `lock`, which excludes overlapping accesses without checks.
  @exclusivity(unchecked) private var uptime = Side(isWall: false)
  @exclusivity(unchecked) private var wall = Side(isWall: true)

  /// Whether a time has passed and all earlier timers have been reported, so that there is nothing to wait for. False
  /// in a forked child, where no thread reports.
  func hasPassed(_ time: UInt64, isWall: Bool) -> Bool {
    guard Clock.hasPassed(time, isWall: isWall), !Process.isForkedChild else { return false }
    return lock.withLock {
      // A reporting thread increments `reportRequests` before it removes due timers under this lock.
      // ORDERING: acquiring; pairs with the operations that end a report.
      guard reportRequests.load(ordering: .acquiring) == 0 else { return false }
      guard let first = isWall ? wall.queue.first : uptime.queue.first else { return true }
      return first > time
    }
  }

  /// Submits `node` to `queue` at a time. The submission cannot be cancelled.
  func submit(_ node: NodePointer, to queue: DispatchQueue, at time: UInt64, isWall: Bool) {
    let poller = EventLoop.shared.begin()
    lock.lock()
    insert(time, isWall: isWall, .submission(node, .passRetained(queue)), poller)
  }

  /// Sets a timer, in place of an earlier setting.
  func set(_ timer: LoopTimer, to window: TimerWindow) {
    let poller = EventLoop.shared.begin()
    lock.lock()
    let wasSet = dequeue(timer)
    switch window.clock {
    case .never:
      lock.unlock()
      if wasSet { Unmanaged.passUnretained(timer).release() }
    case .uptime, .wall:
      // The heap's reference, which it already has if the timer was set.
      let payload = wasSet ? Unmanaged.passUnretained(timer) : .passRetained(timer)
      timer.isWall = window.clock == .wall
      // If the window has begun, the timer is due. Without width the clock need not be read.
      let isDue = window.latest > window.earliest && window.earliest <= (timer.isWall ? wall : uptime).now
      insert(isDue ? window.earliest : window.chosen, isWall: timer.isWall, .timer(payload), poller)
    }
  }

  func cancel(_ timer: LoopTimer) -> Bool {
    let wasSet = lock.withLock { dequeue(timer) }
    // The kernel's timer stays set: at most one needless wake-up.
    if wasSet { Unmanaged.passUnretained(timer).release() }
    return wasSet
  }

  /// Call under the lock. The caller takes over the heap's reference.
  private func dequeue(_ timer: LoopTimer) -> Bool {
    guard let place = timer.place else { return false }
    if timer.isWall { wall.queue.remove(at: place) } else { uptime.queue.remove(at: place) }
    return true
  }

  /// Call under the lock; releases it.
  private func insert(_ time: UInt64, isWall: Bool, _ payload: TimerHeap.Payload, _ known: Poller?) {
    // A poller made meanwhile has been armed without this timer, and its thread does not look at `nudges`.
    let poller = known ?? EventLoop.shared.pollerIfAny
    func add(to side: inout Side) -> Bool {
      side.queue.insert(time, payload)
      let isEarliest = side.queue.first == time
      if let poller, isEarliest || side.wasRefused { side.arm(poller) }
      return isEarliest
    }
    let isEarliest = isWall ? add(to: &wall) : add(to: &uptime)
    let wasRefused = self.wasRefused
    lock.unlock()
    if wasRefused { Runtime.shared.monitor.startEventLoop() }
    if isEarliest && poller == nil { EventLoop.shared.nudge() }
  }

  /// Reports due timers in the order of their times, and sets the kernel's timers for the next.
  /// - Returns: whether a thread that waits for events must go on, since due timers may be left.
  @discardableResult
  func reportDue(_ poller: Poller?) -> Bool {
    // ORDERING: acquiring and releasing; the reporting thread sees what came before each request, and what the last
    // reporting thread did.
    var requests = reportRequests.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue
    guard requests == 1 else { return false }
    var reported = 0
    while true {
      let (count, areLeft) = reportSome(poller)
      reported += count
      if !areLeft {
        // ORDERING: as above; fails if there was another request.
        let (done, now) = reportRequests.compareExchange(
          expected: requests, desired: 0, ordering: .acquiringAndReleasing)
        if done { return false }
        requests = now
      }
      if reported >= Self.mostReported, let poller {
        // ORDERING: as above.
        _ = reportRequests.exchange(0, ordering: .acquiringAndReleasing)
        let wasRefused = lock.withLock { () -> Bool in
          uptime.armAtOnce(poller)
          return self.wasRefused
        }
        if wasRefused { Runtime.shared.monitor.startEventLoop() }
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
    let (areLeft, wasRefused) = lock.withLock { () -> (Bool, Bool) in
      let areLeft = uptime.collect(into: &due, poller)
      return (wall.collect(into: &due, poller) || areLeft, self.wasRefused)
    }
    if wasRefused { Runtime.shared.monitor.startEventLoop() }
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

  /// Whether the kernel refused to set a timer. Call under the lock.
  private var wasRefused: Bool { uptime.wasRefused || wall.wasRefused }

  /// Sets the kernel's timers if the kernel has refused to set one.
  /// - Returns: false if the kernel refuses again.
  func armAgain(_ poller: Poller) -> Bool {
    lock.withLock {
      guard wasRefused else { return true }
      // Both: the uptime's timer may have been meant to fire for a due timer of the wall clock.
      uptime.armAgain(poller)
      wall.armAgain(poller)
      return !wasRefused
    }
  }

  /// When to look next, for a thread that sleeps without the kernel's timers.
  func nextLook() -> Deadline {
    lock.withLock {
      guard uptime.queue.first != nil || wall.queue.first != nil else { return .never }
      // The wall clock may be set at any time: look at it at least every second.
      let untilWall = wall.queue.first.map { first -> UInt64 in
        let now = Clock.wall()
        return first <= now ? 0 : min(first - now, 1_000_000_000)
      }
      return .uptime(min(uptime.queue.first ?? .max, untilWall.map { Clock.uptime() &+ $0 } ?? .max))
    }
  }

  /// How many timers are set.
  var count: Int { lock.withLock { uptime.queue.count + wall.queue.count } }
}

// SAFETY: atomics; the rest is GUARDED BY `lock`.
extension TimerTable: @unchecked Sendable {}
