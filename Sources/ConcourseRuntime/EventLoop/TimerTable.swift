/// The timers of both clocks, and what the kernel's timers are set to.
final class TimerTable {
  /// One clock's timers.
  private struct Side {
    let isWall: Bool
    var queue = TimerQueue()
    /// What the kernel's timer is set to; 0 when it is not, or has fired.
    var armed: UInt64 = 0

    /// How long after having told timers a clock rests, a fifth of what the contract allows a delay to be late.
    private static let slack: UInt64 = 200_000

    var now: UInt64 { isWall ? Clock.wall() : Clock.uptime() }

    /// Sets the kernel's timer for the earliest of them, unless that fires sooner anyway and is set then: for
    /// timers that come and go, each later than the last, one wake-up for nothing is cheaper than a system call
    /// for each.
    /// - Parameter earliest: the time before which not to fire.
    mutating func arm(_ poller: Poller, notBefore earliest: UInt64 = 1) {
      let wanted = queue.first.map { max($0, earliest) } ?? 0
      guard wanted != armed, armed == 0 || wanted < armed else { return }
      armed = poller.arm(isWall: isWall, at: wanted) ? wanted : 0
    }

    /// Lets the kernel's timer fire now.
    mutating func armAtOnce(_ poller: Poller) { armed = poller.arm(isWall: isWall, at: 1) ? 1 : 0 }

    /// Moves what is due into `due`, and sets the kernel's timer for what is next.
    mutating func collect(into due: inout [TimerHeap.Entry], _ poller: Poller?) {
      // The kernel's timer has fired, or the wall clock was set: either way it must be set again.
      armed = 0
      guard queue.first != nil else { return }
      let now = self.now
      while let entry = queue.popDue(now) { due.append(entry) }
      guard let poller, queue.first != nil else { return }
      // A dense stream of timers would otherwise wake a thread for each of them.
      arm(poller, notBefore: due.isEmpty ? 1 : now &+ Self.slack)
    }
  }

  private let lock = Lock()
  /// How many have asked for due timers to be told since somebody began to: one thread tells at a time, so
  /// that they come in order, and whoever finds another at it leaves the rest to that one.
  private let telling = Atomic<UInt32>(0)
  // GUARDED BY `lock`, which keeps accesses apart without checks.
  @exclusivity(unchecked) private var uptime = Side(isWall: false)
  @exclusivity(unchecked) private var wall = Side(isWall: true)

  /// Whether a time has passed and all that was to be told before has been: then there is nothing to wait for.
  /// Never in a forked child, where nobody tells.
  func hasPassed(_ time: UInt64, isWall: Bool) -> Bool {
    guard Clock.hasPassed(time, isWall: isWall), !Process.isForkedChild else { return false }
    return lock.withLock {
      // Who tells has begun to before it takes what is due out, under this lock.
      // ORDERING: acquiring; pairs with the end of the telling.
      guard telling.load(ordering: .acquiring) == 0 else { return false }
      guard let first = isWall ? wall.queue.first : uptime.queue.first else { return true }
      return first > time
    }
  }

  /// Lets `node` be submitted to `queue` at a time; nobody can call it off.
  func submit(_ node: NodePointer, to queue: DispatchQueue, at time: UInt64, isWall: Bool) {
    let poller = EventLoop.shared.begin()
    lock.lock()
    insert(time, isWall: isWall, .submission(node, .passRetained(queue)), poller)
  }

  /// Sets a timer anew.
  func set(_ timer: LoopTimer, to window: TimerWindow) {
    let poller = EventLoop.shared.begin()
    lock.lock()
    let wasSet = takeOut(timer)
    switch window.clock {
    case .never:
      lock.unlock()
      if wasSet { Unmanaged.passUnretained(timer).release() }
    case .uptime, .wall:
      // The heap's reference: kept if it had one.
      let payload = wasSet ? Unmanaged.passUnretained(timer) : .passRetained(timer)
      timer.isWall = window.clock == .wall
      // What is due already has nothing to wait for; only a window that has width asks for the time.
      let isDue = window.latest > window.earliest && window.earliest <= (timer.isWall ? wall : uptime).now
      insert(isDue ? window.earliest : window.chosen, isWall: timer.isWall, .timer(payload), poller)
    }
  }

  func cancel(_ timer: LoopTimer) -> Bool {
    let wasSet = lock.withLock { takeOut(timer) }
    // The kernel's timer stays as it is: one wake-up for nothing at most.
    if wasSet { Unmanaged.passUnretained(timer).release() }
    return wasSet
  }

  /// Call under the lock. The heap's reference is the caller's then.
  private func takeOut(_ timer: LoopTimer) -> Bool {
    guard let place = timer.place else { return false }
    if timer.isWall { wall.queue.remove(at: place) } else { uptime.queue.remove(at: place) }
    return true
  }

  /// Call under the lock, which it gives up.
  private func insert(_ time: UInt64, isWall: Bool, _ payload: TimerHeap.Payload, _ known: Poller?) {
    // One made meanwhile has been set already, without this timer, and its thread does not hear nudges.
    let poller = known ?? EventLoop.shared.pollerIfAny
    func add(to side: inout Side) -> Bool {
      side.queue.insert(time, payload)
      guard side.queue.first == time else { return false }
      if let poller { side.arm(poller) }
      return true
    }
    let isEarliest = isWall ? add(to: &wall) : add(to: &uptime)
    lock.unlock()
    if isEarliest && poller == nil { EventLoop.shared.nudge() }
  }

  /// Tells everything that is due, in the order of the times, and sets the kernel's timers for what is
  /// next.
  func tellDue(_ poller: Poller?) {
    // ORDERING: acquiring and releasing; the one who tells sees what came before the asking, and the next to
    // tell what this one did.
    var asked = telling.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue
    guard asked == 1 else { return }
    var told = 0
    while true {
      told += tellDueOnce(poller)
      if told >= Self.mostAtOnce, let poller {
        // Others go on, so that this worker comes to run what it has submitted.
        // ORDERING: as above.
        _ = telling.exchange(0, ordering: .acquiringAndReleasing)
        return lock.withLock { uptime.armAtOnce(poller) }
      }
      // ORDERING: as above; fails when somebody has asked meanwhile.
      let (done, now) = telling.compareExchange(
        expected: asked, desired: 0, ordering: .acquiringAndReleasing)
      if done { return }
      asked = now
    }
  }

  /// How many timers one thread tells before it lets others go on, when more and more become due.
  private static let mostAtOnce = 4096

  /// - Returns: how many were due.
  private func tellDueOnce(_ poller: Poller?) -> Int {
    var due: [TimerHeap.Entry] = []
    lock.withLock {
      uptime.collect(into: &due, poller)
      wall.collect(into: &due, poller)
    }
    for entry in due {
      switch entry.payload {
      case .submission(let node, let queue):
        queue._withUnsafeGuaranteedRef { $0.submit(node) }
        queue.release()
      case .timer(let timer):
        timer._withUnsafeGuaranteedRef { $0.fire() }
        timer.release()
      }
    }
    return due.count
  }

  /// When to look next, for a thread that sleeps without the kernel's timers.
  func nextLook() -> Deadline {
    lock.withLock {
      guard uptime.queue.first != nil || wall.queue.first != nil else { return .never }
      // The wall clock may be set at any time: look at it every second, or sooner if it says so.
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

// SAFETY: GUARDED BY `lock`, as said above.
extension TimerTable: @unchecked Sendable {}
