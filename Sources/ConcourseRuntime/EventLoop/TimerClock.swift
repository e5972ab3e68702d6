internal import CConcourse

/// The timers of one clock and the descriptor that wakes the loop for the earliest of them.
///
/// GUARDED BY the event loop's lock.
struct TimerClock {
  private var heap = TimerHeap()
  private let isWall: Bool
  private let descriptor: Int32
  /// What the descriptor is armed for; 0 when it is not.
  private var armed: UInt64 = 0

  init(isWall: Bool) {
    self.isWall = isWall
    descriptor = concourse_timerfd_create(isWall)
  }

  /// Lets `poller` watch this clock.
  /// - Returns: false when there is no descriptor to watch.
  func join(_ poller: borrowing Poller, token: UInt64) -> Bool {
    descriptor >= 0 && poller.watch(descriptor, token: token)
  }

  var now: UInt64 { isWall ? Clock.wall() : Clock.uptime() }
  var first: UInt64? { heap.first }

  /// - Returns: whether the new timer is the earliest.
  mutating func insert(_ deadline: UInt64, _ node: NodePointer, _ queue: DispatchQueue) -> Bool {
    heap.insert(deadline, node, .passRetained(queue))
    return heap.first == deadline
  }

  /// Arms the descriptor for the earliest timer, if it is not already.
  mutating func arm() {
    let wanted = heap.first ?? 0
    guard descriptor >= 0, wanted != armed else { return }
    armed = concourse_timerfd_arm(descriptor, isWall, wanted) == 0 ? wanted : 0
  }

  /// The descriptor has fired, or the wall clock has been set.
  mutating func acknowledge() {
    concourse_timerfd_clear(descriptor)
    armed = 0
  }

  /// Moves what is due into `due`.
  mutating func collect(into due: inout [TimerHeap.Entry]) {
    guard heap.first != nil else { return }
    let now = self.now
    while let entry = heap.popDue(now) { due.append(entry) }
  }
}
