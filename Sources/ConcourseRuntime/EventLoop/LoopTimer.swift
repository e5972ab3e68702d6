/// Who is told that a timer is due.
protocol TimerOwner: AnyObject, Sendable {
  /// The time has come; called on a thread that polls, with no lock held. May come once more after
  /// `cancel` or another `set`.
  func timerIsDue(_ timer: LoopTimer)
}

/// A time at which the event loop tells somebody: can be set again and cancelled in O(log n), and is gone
/// from the loop's memory then.
///
/// It keeps its owner alive. An owner that is not to live for ever drops the timer when it has ended, and
/// cancels it after that, and after a `set` that may have been too late.
class LoopTimer {
  /// GUARDED BY the loop's timer lock: where it stands in its clock's heap, or nil.
  @exclusivity(unchecked) final var place: Int?
  /// GUARDED BY the loop's timer lock: on which clock it stands.
  @exclusivity(unchecked) final var isWall = false
  private let owner: TimerOwner?

  init(owner: TimerOwner?) { self.owner = owner }

  /// Lets the timer be due at `deadline`, instead of what was set before.
  final func set(_ deadline: Deadline) { set(TimerWindow(deadline)) }

  /// Lets the timer be due at some time within `window`, chosen so that few wake-ups serve many timers.
  final func set(_ window: TimerWindow) { EventLoop.timers.set(self, to: window) }

  /// As `set`, unless the time has come already and nothing that was to come before is outstanding.
  /// - Returns: false if so: the timer is not set then. Of what was set before the loop may still tell, as after
  ///   `cancel`.
  final func setUnlessDue(_ window: TimerWindow) -> Bool {
    if window.clock != .never, EventLoop.timers.hasPassed(window.earliest, isWall: window.clock == .wall) {
      cancel()
      return false
    }
    set(window)
    return true
  }

  /// Takes the timer out of the loop.
  /// - Returns: whether it stood there; if not, it was never set, has been told, or is about to be.
  @discardableResult
  final func cancel() -> Bool { EventLoop.timers.cancel(self) }

  /// Tells the owner. Called by the loop.
  func fire() { owner?.timerIsDue(self) }
}

// SAFETY: the guards above; the owner is constant.
extension LoopTimer: @unchecked Sendable {}

/// When a timer may be due: not before `earliest`, and not later than `latest` if that can be helped.
struct TimerWindow: Equatable {
  enum Clock {
    case uptime, wall
    /// No clock ever reaches it.
    case never
  }

  let clock: Clock
  let earliest: UInt64
  let latest: UInt64

  init(clock: Clock, earliest: UInt64, latest: UInt64) {
    self.clock = clock
    self.earliest = earliest
    self.latest = max(earliest, latest)
  }

  init(_ deadline: Deadline) {
    switch deadline {
    case .immediate: self.init(clock: .uptime, earliest: 0, latest: 0)
    case .uptime(let time): self.init(clock: .uptime, earliest: time, latest: time)
    case .wall(let time): self.init(clock: .wall, earliest: time, latest: time)
    case .never: self.init(clock: .never, earliest: .max, latest: .max)
    }
  }

  /// The time in the window that is divisible by the highest power of two.
  ///
  /// Timers that know nothing of one another thus choose the same time whenever their windows share a
  /// round one, so that one wake-up serves them all. Exactly `earliest` if the window has no width.
  var chosen: UInt64 {
    guard latest > earliest, earliest > 0 else { return earliest }
    // The highest bit in which the two ends differ: above it they agree, and setting it in the common part
    // gives the roundest number after `earliest`, up to `latest`. One less than `earliest`, so that
    // `earliest` itself may be chosen.
    let before = earliest &- 1
    let highest = 63 - (before ^ latest).leadingZeroBitCount
    return latest & ~((1 << UInt64(highest)) &- 1)
  }
}
