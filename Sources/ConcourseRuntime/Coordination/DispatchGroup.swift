/// Counts work that is outstanding, so that one can wait for all of it or be told when it is done.
///
/// Anything may be counted: items submitted with the group, or stretches between `enter` and `leave`.
/// A group can be used again. All calls may be made from any thread. Matching C type:
/// `dispatch_group_t`.
public class DispatchGroup: DispatchObject {
  @usableFromInline final let state = GroupState()
  /// Grows by one each time the group becomes empty with somebody registered: what waiters sleep on.
  private let round = Atomic<UInt32>(0)
  private let lock = Lock()
  private var registered: [Notification] = []
  /// Somebody sleeps, or is about to, until `round` grows.
  private var hasWaiters = false

  private struct Notification {
    let queue: DispatchQueue
    let node: NodePointer
  }

  /// An empty group. O(1). Matching C function: `dispatch_group_create`.
  public init() { super.init(kind: .group) }

  /// Adds one to what is outstanding. O(1), one atomic addition. Traps when about a thousand million
  /// entries are outstanding. Matching C function: `dispatch_group_enter`.
  @inlinable
  public final func enter() {
    if !state.enter() { tooManyEntries() }
  }

  /// Takes one from what is outstanding; at zero, waiters are released and notifications submitted.
  ///
  /// Traps when nothing is outstanding. O(1) but for the last. Matching C function:
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
    Trap.clientBug("enter() on a group with 2^30 outstanding entries: leave() is missing")
  }

  @usableFromInline @inline(never)
  final func unbalancedLeave() -> Never {
    Trap.clientBug("leave() on a group that is empty: more leaves than enters")
  }

  // MARK: Items

  /// Counts an item that is being submitted. The first of them keeps the group alive, so that each item
  /// need not.
  @inline(__always)
  final func enterForItem() -> Unmanaged<DispatchGroup> {
    if !state.enterItem(first: { _ = Unmanaged.passRetained(self) }) { tooManyEntries() }
    return .passUnretained(self)
  }

  /// The item has returned and everything it captured is gone.
  final func leaveAfterItem() {
    let (leave, lastItem) = state.leaveItem()
    if leave == .last { becameEmpty() }
    if lastItem { Unmanaged.passUnretained(self).release() }
  }

  // MARK: Waiting

  /// Waits until nothing is outstanding.
  ///
  /// Blocks the calling thread; returns at once when the group is empty. Matching C function:
  /// `dispatch_group_wait`.
  @available(*, noasync, message: "blocks the thread; use notify or await the work")
  public func wait() { _ = wait(until: .never) }

  /// Waits until nothing is outstanding or `timeout` has passed; a time that has passed already only
  /// looks. Matching C function: `dispatch_group_wait`.
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
    lock.lock()
    // ORDERING: relaxed; `round` changes only under the lock.
    let seen = round.load(ordering: .relaxed)
    let mustWait = state.register()
    if mustWait { hasWaiters = true }
    lock.unlock()
    guard mustWait else { return .success }
    var result = DispatchTimeoutResult.success
    BlockedSection.run {
      // ORDERING: acquiring; pairs with the releasing addition in `becameEmpty`.
      while round.load(ordering: .acquiring) == seen {
        if Futex.wait(round, expected: seen, deadline: deadline) == .timedOut {
          // ORDERING: acquiring; as above.
          result = round.load(ordering: .acquiring) == seen ? .timedOut : .success
          return
        }
      }
    }
    return result
  }

  // MARK: Notification

  /// Submits a closure once nothing is outstanding: at once if the group is empty, else when the count
  /// next reaches zero. The group and the queue stay alive until then. Notifications for one serial
  /// queue arrive in the order of their registration. Matching C function: `dispatch_group_notify`.
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

  /// As `notify(qos:flags:queue:execute:)`, submitting a work item. Matching C function:
  /// `dispatch_group_notify`.
  public func notify(queue: DispatchQueue, work: DispatchWorkItem) {
    notify(queue, work.makeNode(for: queue, group: nil))
  }

  /// Submitted under the lock, here and in `becameEmpty`, so that the order of registration is kept
  /// whoever submits; no client code runs there.
  final func notify(_ queue: DispatchQueue, _ node: NodePointer) {
    lock.withLock {
      if state.register() {
        registered.append(Notification(queue: queue, node: node))
      } else {
        // Empty: what was registered before and is still on its way out goes first.
        submitRegistered()
        queue.submit(node)
      }
    }
  }

  /// The count has touched zero while somebody was registered.
  @usableFromInline @inline(never)
  final func becameEmpty() { lock.withLock { submitRegistered() } }

  /// Tells everybody registered that the group is empty, unless it is no longer or they have been told.
  /// Call under the lock.
  private final func submitRegistered() {
    guard state.takeRegistrations() else { return }
    // ORDERING: releasing; pairs with the acquiring loads in `wait`.
    round.wrappingAdd(1, ordering: .releasing)
    if hasWaiters {
      hasWaiters = false
      Futex.wake(round, count: .max)
    }
    for notification in registered { notification.queue.submit(notification.node) }
    // A group that is used again and again needs no new memory each time.
    registered.removeAll(keepingCapacity: registered.count <= 16)
  }
}

// SAFETY: `state` and `round` are atomics, `registered` and `hasWaiters` are GUARDED BY `lock`.
extension DispatchGroup: @unchecked Sendable {}

// A group that C programs hold keeps itself alive while it is entered: they may release it then.

extension DispatchGroup {
  /// As `enter`. Matching C function: `dispatch_group_enter`.
  @inlinable
  package final func enterKeptAlive() {
    if !state.enter(first: { DispatchObject.retainForC(.passUnretained(self)) }) { tooManyEntries() }
  }

  /// As `leave`, for who entered by `enterKeptAlive`. Matching C function: `dispatch_group_leave`.
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
