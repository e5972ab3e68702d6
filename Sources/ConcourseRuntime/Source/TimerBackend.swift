/// A timer source's part of the event loop.
final class TimerBackend: SourceBackend, TimerOwner {
  private let lock = Lock()
  // GUARDED BY `lock`.
  private var schedule = TimerSchedule.disarmed
  private weak var source: SourceCore?
  private var timer: LoopTimer?

  /// Programs the timer anew; what has accumulated is void.
  func program(_ schedule: TimerSchedule, for core: SourceCore) {
    lock.withLock {
      self.schedule = schedule
      core.discardEvents()
      timer?.set(schedule.window)
    }
  }

  func install(for source: SourceCore) {
    lock.withLock {
      self.source = source
      let timer = LoopTimer(owner: self)
      self.timer = timer
      timer.set(schedule.window)
    }
  }

  func timerIsDue(_ timer: LoopTimer) {
    let source = lock.withLock { self.timer === timer ? self.source : nil }
    source?.raise(1)
  }

  /// The count is taken now, not when the timer fired: what elapsed while the source or its queue was
  /// suspended, or waited for a thread, is in it.
  func collect(_ pending: UInt) -> UInt? {
    lock.withLock {
      let now = schedule.clock == .wall ? Clock.wall() : Clock.uptime()
      let count = schedule.elapse(now: now)
      return count > 0 ? count : nil
    }
  }

  func rearm() { lock.withLock { timer?.set(schedule.window) } }

  func restart() {
    _ = collect(0)
    rearm()
  }

  func remove() {
    lock.withLock {
      timer?.cancel()
      timer = nil
    }
  }
}

// SAFETY: the guards above.
extension TimerBackend: @unchecked Sendable {}
