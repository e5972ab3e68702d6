/// The owner of a `LoopTimer`, notified when it is due.
protocol TimerOwner: AnyObject, Sendable {
  /// The timer is due. Called on a thread that polls, with no lock held. May come once more after `cancel` or another
  /// `set`.
  func timerIsDue(_ timer: LoopTimer)
}

/// A timer of the event loop. Setting it again and cancelling it are O(log n) and free its old entry at once.
///
/// It keeps its owner alive. An owner that ends drops the timer and then cancels it; a `set` that may have come later
/// is followed by another `cancel`.
class LoopTimer {
  /// GUARDED BY the lock of its table: its index in its clock's heap, or nil.
  @exclusivity(unchecked) final var place: Int?
  /// GUARDED BY the lock of its table: whether it is set on the wall clock.
  @exclusivity(unchecked) final var isWall = false
  /// GUARDED BY the lock of its table: whether a thread that reports has taken it out of one of several tables, and no
  /// thread has set or cancelled it since.
  @exclusivity(unchecked) final var isTaken = false
  final let homePlace = Atomic<UInt16>(.max)
  private let owner: TimerOwner?

  /// The table in which it is set, or was last, if there are several; no table's place if it has never been set. Changed
  /// under the lock of the old one. The new one's guards the fields from then on.
  final var home: Int {
    // ORDERING: acquiring; pairs with the store; the next holder of the new table's lock sees the fields.
    get { Int(homePlace.load(ordering: .acquiring)) }
    // ORDERING: releasing; as above.
    set { homePlace.store(UInt16(newValue), ordering: .releasing) }
  }

  /// Its table, which is `own` from now on if it has never been set.
  final func home(orElse own: Int) -> Int {
    guard home == UInt16.max else { return home }
    // ORDERING: acquiring; as above. The fields of a timer that has never been set are those of the initialiser.
    let (isNew, now) = homePlace.compareExchange(expected: .max, desired: UInt16(own), ordering: .acquiring)
    return isNew ? own : Int(now)
  }

  init(owner: TimerOwner?) { self.owner = owner }

  /// Sets the timer to `deadline`, in place of an earlier setting.
  final func set(_ deadline: Deadline) { set(TimerWindow(deadline)) }

  /// Sets the timer to a time within `window`, chosen so that few wake-ups serve many timers.
  final func set(_ window: TimerWindow) { EventLoop.timers.set(self, to: window) }

  /// As `set`, unless the time has passed and all earlier timers have been reported.
  /// - Returns: false if so: the timer is not set then. The loop may still report an earlier setting, as after
  ///   `cancel`.
  final func setUnlessDue(_ window: TimerWindow) -> Bool {
    if window.clock != .never, EventLoop.timers.hasPassed(window.earliest, isWall: window.clock == .wall) {
      cancel()
      return false
    }
    set(window)
    return true
  }

  /// Removes the timer from the loop.
  /// - Returns: whether it was there. If not, it was never set, has been reported, or is about to be.
  @discardableResult
  final func cancel() -> Bool { EventLoop.timers.cancel(self) }

  /// Notifies the owner. Called by the loop.
  func fire() { owner?.timerIsDue(self) }
}

// SAFETY: the guards above; the owner is constant.
extension LoopTimer: @unchecked Sendable {}

/// When a timer may be due: not before `earliest`, and if possible not after `latest`.
struct TimerWindow: Equatable {
  enum Clock {
    case uptime, wall
    /// Never due.
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
  /// So unrelated timers whose windows share a round time choose the same time, and one wake-up serves them all.
  /// Exactly `earliest` if the window has no width.
  var chosen: UInt64 {
    guard latest > earliest, earliest > 0 else { return earliest }
    // The ends agree above the highest bit in which they differ. Their common part with this bit set is the roundest
    // number after the lower end, up to `latest`. The lower end is `earliest - 1`, so that `earliest` may be chosen.
    let before = earliest &- 1
    let highest = 63 - (before ^ latest).leadingZeroBitCount
    return latest & ~((1 << UInt64(highest)) &- 1)
  }
}
