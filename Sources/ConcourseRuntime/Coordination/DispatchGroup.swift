internal import CConcourse

/// Counts outstanding work, and lets a thread wait, or be notified, until all of it is done.
///
/// A group counts items that are submitted with it, and pairs of `enter` and `leave`. It can be reused. All calls may
/// be made from any thread. Matching C type: `dispatch_group_t`.
public class DispatchGroup: DispatchObject {
  @usableFromInline final let state = GroupState()
  /// The futex on which waiters sleep. Incremented each time the group becomes empty while `hasWaiters` is set.
  private let round = Atomic<UInt32>(0)
  private let lock = Lock(.group)
  // GUARDED BY `lock`. The lock keeps accesses apart; a run-time check of each access would cost more than the access.
  @exclusivity(unchecked) private var notifications = NodeChain()
  /// Whether a thread sleeps, or is about to, until `round` changes.
  @exclusivity(unchecked) private var hasWaiters = false

  /// Creates an empty group. O(1). Matching C function: `dispatch_group_create`.
  public init() { super.init(kind: .group) }

  deinit {
    // The group was entered and never left.
    if !notifications.isEmpty { DeferredRelease.release(.notifications(notifications)) }
  }

  /// Increments the count of outstanding work. O(1), one atomic addition. Traps at 2^30 outstanding entries.
  /// Matching C function: `dispatch_group_enter`.
  @inlinable
  public final func enter() {
    if !state.enter() { tooManyEntries() }
  }

  /// Decrements the count of outstanding work; at zero, releases the waiters and submits the notifications.
  ///
  /// Traps when nothing is outstanding. O(1), except for the last `leave`. Matching C function:
  /// `dispatch_group_leave`.
  @inlinable
  public final func leave() {
    switch state.leave() {
    case .others: return
    case .last: becameEmpty()
    case .unbalanced: unbalancedLeave()
    }
  }

  @usableFromInline @inline(never)
  final func tooManyEntries() -> Never {
    Trap.clientBug(302, "enter() on a group with 2^30 outstanding entries: leave() is missing")
  }

  @usableFromInline @inline(never)
  final func unbalancedLeave() -> Never {
    Trap.clientBug(301, "leave() on a group that is empty: more leaves than enters")
  }

  // MARK: Items

  /// Counts an item that is being submitted. The first outstanding item retains the group for all of them.
  @inline(__always)
  final func enterForItem() -> Unmanaged<DispatchObject> {
    if !state.enterItem(first: { _ = Unmanaged.passRetained(self) }) { tooManyEntries() }
    return .passUnretained(self)
  }

  /// Uncounts an item that has returned and whose captures are destroyed.
  override final func itemEnded() {
    let (leave, lastItem) = state.leaveItem()
    if leave == .last { becameEmpty() }
    if lastItem { Unmanaged.passUnretained(self).release() }
  }

  // MARK: Waiting

  /// Waits until nothing is outstanding.
  ///
  /// Blocks the calling thread; returns at once when the group is empty. Traps inside an item that was submitted with
  /// the group: it would wait for itself. Matching C function: `dispatch_group_wait`.
  @available(*, noasync, message: "blocks the thread; use notify or await the work")
  public func wait() { _ = wait(until: .never) }

  /// Waits until nothing is outstanding or `timeout` has passed. A timeout in the past only tests the group.
  /// Matching C function: `dispatch_group_wait`.
  /// - Parameter timeout: the time after which the caller returns; a past one only looks.
  @available(*, noasync, message: "blocks the thread; use notify or await the work")
  public func wait(timeout: DispatchTime) -> DispatchTimeoutResult { wait(until: Deadline(timeout)) }

  /// As `wait(timeout:)`, on the wall clock. Matching C function: `dispatch_group_wait`.
  @available(*, noasync, message: "blocks the thread; use notify or await the work")
  public func wait(wallTimeout timeout: DispatchWallTime) -> DispatchTimeoutResult {
    wait(until: Deadline(timeout))
  }

  package final func wait(until deadline: Deadline) -> DispatchTimeoutResult {
    if state.isEmpty { return .success }
    if case .immediate = deadline { return .timedOut }
    if Spin.wait(rounds: Spin.waitRounds, until: { state.isEmpty }) { return .success }
    let group = Unmanaged.passUnretained(self).toOpaque()
    if case .never = deadline {
      if CurrentThread.state.pointee.group == group { waitInsideItem() }
      if state.hasItems && CurrentThread.isMain { requireThreads() }
    }
    if !WorkerThread.isLowered { Runtime.boost { $0.stands { $0.group?.toOpaque() == group } } }
    lock.lock()
    // ORDERING: relaxed; `round` changes only under the lock.
    let seen = round.load(ordering: .relaxed)
    let mustWait = state.register()
    if mustWait { hasWaiters = true }
    lock.unlock()
    guard mustWait else { return .success }
    TaskWaits.note("DispatchGroup.wait()")
    let isOver = BlockedSection.run(.group, group) {
      guard case .never = deadline else { return sleep(until: deadline, seen) }
      if Process.isForkedChild { return sleepBesideMainThread(seen) }
      BlockedThreads.during(
        .init(object: group, kind: .group), ending: .byPlaces(round: seen, isAwaited: Self.isAwaited)
      ) { sleep(until: $0, seen) }
      return true
    }
    return isOver ? .success : .timedOut
  }

  /// - Returns: whether the group has become empty since `seen` was read.
  private final func sleep(until deadline: Deadline, _ seen: UInt32) -> Bool {
    // ORDERING: acquiring; pairs with the releasing addition in `submitRegistered`.
    while round.load(ordering: .acquiring) == seen {
      if Futex.waitForOthers(round, expected: seen, deadline: deadline) == .timedOut {
        // ORDERING: acquiring; as above.
        return round.load(ordering: .acquiring) != seen
      }
    }
    return true
  }

  /// Sleeps in a forked child until the group is empty. Its other threads may serve items. Traps when there is only the main
  /// thread besides, it has had nothing to serve for a second, and there are items: those are the pool's.
  private final func sleepBesideMainThread(_ seen: UInt32) -> Bool {
    var futile = 0
    while !sleep(until: .uptime(Clock.uptime() &+ 100_000_000), seen) {
      let mayBeServed = Process.threadCount > 2 || ProcessQueues.shared.mainThread.mayServe
      futile = !mayBeServed && state.hasItems ? futile + 1 : 0
      if futile == 10 { requireThreads() }
    }
    return true
  }

  private final func requireThreads() { Runtime.requireThreads("wait() on a group with items") }

  /// Whether a thread that registered when the round was `seen` has not been released, and cannot be before the items
  /// that run now have returned. For the search for deadlocks.
  static func isAwaited(_ group: UnsafeRawPointer, since seen: UInt32) -> Bool {
    Unmanaged<DispatchGroup>.fromOpaque(group)._withUnsafeGuaranteedRef {
      // ORDERING: relaxed; `hasRegistrations` acquires. If the registrations that it has seen are later ones, the round
      // changed before they were made.
      $0.state.hasRegistrations && $0.round.load(ordering: .relaxed) == seen
    }
  }

  /// For tests.
  // ORDERING: relaxed; tests compare values that they have seen.
  final var roundForTests: UInt32 { round.load(ordering: .relaxed) }

  @inline(never)
  private final func waitInsideItem() -> Never {
    Trap.clientBug(
      312,
      "wait() on a group from inside an item that was submitted with it\(Self.place): the item would wait for itself"
    )
  }

  /// The queue of the item that the calling thread runs.
  private static var place: String {
    guard let queue = Frame.current?.pointee.queue.takeUnretainedValue() else { return "" }
    return ", on queue \"\(queue.label)\""
  }

  // MARK: Notification

  /// Submits a closure when nothing is outstanding: at once if the group is empty, otherwise when the count next
  /// reaches zero. The group and the queue stay alive until then. Notifications for one serial queue run in the order
  /// of their registration. Matching C function: `dispatch_group_notify`.
  /// - Parameters:
  ///   - qos: The class of the item; `.unspecified` means that of the queue or, failing that, of the caller.
  ///   - flags: `.barrier` makes the item a barrier on a private concurrent queue; QoS rules apply as in `async`.
  ///   - queue: Where the closure runs.
  ///   - work: The closure.
  public func notify(
    qos: DispatchQoS = .unspecified, flags: DispatchWorkItemFlags = [], queue: DispatchQueue,
    execute work: @escaping () -> Void
  ) {
    let level = queue.servingLevel(QoSLevel(qos.qosClass), flags)
    notify(
      queue,
      NodeMagazine.make(
        .closure(work), level: level, traits: flags.contains(.barrier) ? .barrier : []))
  }

  /// Registers a notification. `notify` and `becameEmpty` submit notifications under the lock, which keeps the order
  /// of registration. No client code runs under it.
  final func notify(_ queue: DispatchQueue, _ node: NodePointer) {
    lock.withLock {
      if state.register() {
        notifications.append(node, for: queue)
      } else {
        // The group is empty: earlier notifications that are not submitted yet go first.
        submitRegistered()
        queue.submit(node)
      }
    }
  }

  /// Releases waiters and notifications after the count has reached zero with `registered` set.
  @usableFromInline @inline(never)
  final func becameEmpty() { lock.withLock { submitRegistered() } }

  /// Wakes the waiters and submits the notifications, unless the group is in use again or another thread has done so.
  /// Call under the lock.
  private final func submitRegistered() {
    guard state.takeRegistrations() else { return }
    if hasWaiters {
      hasWaiters = false
      // ORDERING: releasing; pairs with the acquiring loads in `wait`.
      round.wrappingAdd(1, ordering: .releasing)
      Futex.wake(round, count: .max)
    }
    notifications.submitAll()
  }
}

// SAFETY: `state` and `round` are atomics; `notifications` and `hasWaiters` are GUARDED BY `lock`.
extension DispatchGroup: @unchecked Sendable {}

// A group that a C program has entered retains itself: the program may release it before it leaves.

extension DispatchGroup {
  /// As `enter`. Matching C function: `dispatch_group_enter`.
  @inlinable
  package final func enterKeptAlive() {
    if !state.enter(first: { DispatchObject.retainForC(.passUnretained(self)) }) { tooManyEntries() }
  }

  /// As `leave`, balancing `enterKeptAlive`. Matching C function: `dispatch_group_leave`.
  @inlinable
  package final func leaveKeptAlive() {
    let (leave, lastEntered) = state.leaveEntered()
    switch leave {
    case .others: break
    case .last: becameEmpty()
    case .unbalanced: unbalancedLeave()
    }
    if lastEntered { DispatchObject.releaseForC(.passUnretained(self)) }
  }
}
