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
