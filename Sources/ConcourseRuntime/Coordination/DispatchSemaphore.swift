/// A counting semaphore that makes no system call unless a thread must sleep or be woken.
///
/// All calls may be made from any thread; a signal need not come from the thread that waited. Matching
/// C type: `dispatch_semaphore_t`.
public class DispatchSemaphore: DispatchObject {
  /// The value; below zero, minus the number of waiters.
  @usableFromInline final let value: Atomic<Int>
  /// Signals that belong to waiters who have not picked them up: what they sleep on. Signed: below zero, what
  /// timed-out waiters have taken in advance, of signals that are under way.
  private let grants = Atomic<UInt32>(0)
  /// Waiters that sleep, or are about to.
  private let sleepers = Atomic<Int>(0)
  private let original: Int

  /// A semaphore with `value` places. Traps for a negative value. Matching C function:
  /// `dispatch_semaphore_create`.
  public init(value: Int) {
    guard value >= 0 else {
      Trap.clientBug("DispatchSemaphore(value: \(value)): the value must not be negative")
    }
    original = value
    self.value = Atomic(value)
    super.init(kind: .semaphore)
  }

  deinit {
    // ORDERING: relaxed; the last reference is gone, nobody else looks.
    let last = value.load(ordering: .relaxed)
    if last < original {
      Trap.clientBug(
        "a semaphore was released while in use: its value is \(last), below the \(original) it was "
          + "created with")
    }
  }

  /// Gives one place back and releases the waiter it belongs to, if any.
  ///
  /// O(1), one atomic addition when nobody waits. Matching C function: `dispatch_semaphore_signal`.
  /// - Returns: non-zero exactly when a waiting thread was released.
  @inlinable
  @discardableResult
  public final func signal() -> Int {
    // ORDERING: releasing; pairs with the acquiring subtraction of the wait that takes this place.
    let before = value.wrappingAdd(1, ordering: .releasing).oldValue
    if before >= 0 { return 0 }
    grant()
    return 1
  }

  /// Takes one place, waiting for it as long as it takes. Matching C function:
  /// `dispatch_semaphore_wait`.
  @available(*, noasync, message: "blocks the thread; await a task instead")
  @inlinable
  public final func wait() {
    // ORDERING: acquiring; pairs with the releasing addition in `signal`.
    if value.wrappingSubtract(1, ordering: .acquiring).oldValue > 0 { return }
    waitForGrant()
  }

  /// Takes one place, waiting until `timeout` at most; a time that has passed already only looks. A wait
  /// that fails leaves the semaphore as it was. Matching C function: `dispatch_semaphore_wait`.
  @available(*, noasync, message: "blocks the thread; await a task instead")
  public final func wait(timeout: DispatchTime) -> DispatchTimeoutResult { wait(until: Deadline(timeout)) }

  /// As `wait(timeout:)`, on the wall clock. Matching C function: `dispatch_semaphore_wait`.
  @available(*, noasync, message: "blocks the thread; await a task instead")
  public final func wait(wallTimeout: DispatchWallTime) -> DispatchTimeoutResult {
    wait(until: Deadline(wallTimeout))
  }

  package final func wait(until deadline: Deadline) -> DispatchTimeoutResult {
    // ORDERING: acquiring; as in `wait()`.
    if value.wrappingSubtract(1, ordering: .acquiring).oldValue > 0 { return .success }
    return waitForGrant(deadline)
  }

  // MARK: Slow paths

  /// A waiter is owed a place: lets one pick it up.
  @usableFromInline @inline(never)
  final func grant() {
    // Until then the waiter keeps the semaphore alive; let go, it may release the last reference, also to what a C
    // program is signalling.
    let kept = Unmanaged.passRetained(self)
    defer { kept.release() }
    deliver()
  }

  /// Adds a grant, and wakes the waiters that may go on.
  private final func deliver() {
    // ORDERING: sequentially consistent; releases what the signaller did, and stands before its look at
    // the sleepers. The waiter announces its sleep before it looks at `grants` for the last time.
    let granted = Int32(bitPattern: grants.wrappingAdd(1, ordering: .sequentiallyConsistent).newValue)
    // Below zero no waiter may go on yet. At zero all late waiters may.
    guard granted >= 0 else { return }
    // ORDERING: sequentially consistent; the other half of that race.
    guard sleepers.load(ordering: .sequentiallyConsistent) > 0 else { return }
    Futex.wake(grants, count: granted == 0 ? .max : 1)
  }

  @usableFromInline @inline(never)
  final func waitForGrant() { _ = waitForGrant(.never) }

  /// The value was taken below zero: a later signal owes this thread a place.
  private final func waitForGrant(_ deadline: Deadline) -> DispatchTimeoutResult {
    if case .immediate = deadline {
    } else if Spin.wait(rounds: Spin.waitRounds, until: { takeGrant() == nil }) {
      return .success
    }
    var result = DispatchTimeoutResult.success
    BlockedSection.run { result = sleep(until: deadline) }
    return result
  }

  private final func sleep(until deadline: Deadline) -> DispatchTimeoutResult {
    // ORDERING: sequentially consistent; see `grant`.
    sleepers.wrappingAdd(1, ordering: .sequentiallyConsistent)
    // ORDERING: relaxed; leaving late only costs a signaller a futile wake-up.
    defer { sleepers.wrappingSubtract(1, ordering: .relaxed) }
    while true {
      guard let seen = takeGrant() else { return .success }
      if Futex.wait(grants, expected: seen, deadline: deadline) == .timedOut {
        return withdraw() || !takeOwedGrant() ? .timedOut : .success
      }
    }
  }

  /// - Returns: nil when it has taken one, else what it saw of `grants`.
  private final func takeGrant() -> UInt32? {
    // ORDERING: sequentially consistent; the last look before sleep must come after the announcement.
    var seen = grants.load(ordering: .sequentiallyConsistent)
    while Int32(bitPattern: seen) > 0 {
      // ORDERING: acquiring, pairs with the addition in `deliver`; releasing, so that a late waiter whose grant this
      // was sees in `value` that there is one waiter more.
      let (taken, original) = grants.weakCompareExchange(
        expected: seen, desired: seen - 1, ordering: .acquiringAndReleasing)
      if taken { return nil }
      seen = original
    }
    return seen
  }

  /// A signal has counted this waiter in: takes its grant, in advance if need be, and sleeps until it has come. Until
  /// then the signaller still uses the semaphore; taken in advance, no other waiter gets it.
  /// - Returns: false when another waiter had taken that grant; this one has withdrawn instead.
  private final func takeOwedGrant() -> Bool {
    // ORDERING: sequentially consistent; as in `takeGrant`, and before the look at `value`.
    var seen = grants.wrappingSubtract(1, ordering: .sequentiallyConsistent).newValue
    guard Int32(bitPattern: seen) < 0 else { return true }
    if withdraw() {
      deliver()
      return false
    }
    while Int32(bitPattern: seen) < 0 {
      _ = Futex.wait(grants, expected: seen)
      // ORDERING: sequentially consistent; as in `takeGrant`.
      seen = grants.load(ordering: .sequentiallyConsistent)
    }
    return true
  }

  /// Undoes this thread's decrement after a timeout.
  /// - Returns: false when a signal has come meanwhile: its grant must be taken.
  private final func withdraw() -> Bool {
    // ORDERING: relaxed; undoing publishes nothing.
    var seen = value.load(ordering: .relaxed)
    while seen < 0 {
      // ORDERING: relaxed; as above.
      let (done, original) = value.weakCompareExchange(
        expected: seen, desired: seen + 1, ordering: .relaxed)
      if done { return true }
      seen = original
    }
    return false
  }
}

// SAFETY: everything mutable is atomic.
extension DispatchSemaphore: @unchecked Sendable {}
