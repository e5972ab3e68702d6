/// A timer source's part of the event loop: the loop's timer itself.
// SAFETY: what changes is GUARDED BY `lock`, which keeps accesses apart without checks.
final class TimerBackend: LoopTimer, SourceBackend, @unchecked Sendable {
  private let lock = Lock()
  @exclusivity(unchecked) private var schedule = TimerSchedule.disarmed
  /// From `install` to `remove`; the timer is set only then.
  @exclusivity(unchecked) private var source: SourceCore?

  /// Whether the source has been told of a time, and not asked for the count yet: it lets the timer be set then.
  @exclusivity(unchecked) private var hasTold = false

  init() { super.init(owner: nil) }

  /// Programs the timer anew; what has accumulated is void.
  func program(_ schedule: TimerSchedule) {
    let isDue = lock.withLock { () -> Bool in
      self.schedule = schedule
      guard let source else { return false }
      source.discardEvents()
      hasTold = false
      return !setUnlessDue(schedule.window)
    }
    if isDue { fire() }
  }

  func install(for source: SourceCore) {
    let isDue = lock.withLock { () -> Bool in
      self.source = source
      return !setUnlessDue(schedule.window)
    }
    if isDue { fire() }
  }

  override func fire() {
    let source = lock.withLock { () -> SourceCore? in
      hasTold = true
      return self.source
    }
    source?.raise(1)
  }

  /// The count is taken now, not when the timer fired: what elapsed while the source or its queue was
  /// suspended, or waited for a thread, is in it.
  func collect(_ pending: UInt) -> UInt? {
    lock.withLock {
      hasTold = false
      let now = schedule.clock == .wall ? Clock.wall() : Clock.uptime()
      let count = schedule.elapse(now: now)
      return count > 0 ? count : nil
    }
  }

  func rearm() { lock.withLock { if source != nil && !hasTold { set(schedule.window) } } }

  func restart() {
    _ = collect(0)
    rearm()
  }

  func remove() {
    // Released outside the lock.
    let last = lock.withLock { () -> SourceCore? in
      cancel()
      defer { source = nil }
      return source
    }
    withExtendedLifetime(last) {}
  }
}
