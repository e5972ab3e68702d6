/// A counting semaphore. It makes a system call only to put a thread to sleep or to wake one.
///
/// All calls may be made from any thread; the thread that signals need not have waited.
/// Matching C type: `dispatch_semaphore_t`.
public class DispatchSemaphore: DispatchObject {
  /// The value; below zero, the negated number of waiters.
  @usableFromInline final let value: Atomic<Int>
  /// The grants of signals that no waiter has taken yet; the futex on which waiters sleep. Signed: below zero, the
  /// number of grants that timed-out waiters have taken in advance from signals in flight.
  private let grants = Atomic<UInt32>(0)
  /// The number of waiters that sleep, or are about to.
  private let sleepers = Atomic<Int>(0)
  private let original: Int

  /// Creates a semaphore with `value` places. Traps on a negative value. Matching C function:
  /// `dispatch_semaphore_create`.
  /// - Parameter value: the places that are free at first.
  public init(value: Int) {
    guard value >= 0 else {
      Trap.clientBug(303, "DispatchSemaphore(value: \(value)): the value must not be negative")
    }
    original = value
    self.value = Atomic(value)
    super.init(kind: .semaphore)
  }

  deinit {
    // ORDERING: relaxed; the last reference is gone, so no other thread accesses the value.
    let last = value.load(ordering: .relaxed)
    if last < original {
      Trap.clientBug(
        304,
        "a semaphore was released while in use: its value is \(last), below the \(original) it was "
          + "created with")
    }
  }

  /// Returns a place and wakes the waiter that receives it, if any.
  ///
  /// O(1), one atomic addition if there is no waiter. Traps on a semaphore that has `Int.max` places.
  /// Matching C function: `dispatch_semaphore_signal`.
  /// - Returns: non-zero exactly if a waiting thread received the place.
  @inlinable
  @discardableResult
  public final func signal() -> Int {
    // ORDERING: releasing; pairs with the acquiring subtraction of the wait that takes this place.
    let before = value.wrappingAdd(1, ordering: .releasing).oldValue
    // One comparison for both: neither below zero, nor at `Int.max`, whose successor wraps.
    if UInt(bitPattern: before) < UInt(Int.max) { return 0 }
    return SemaphoreGrant.give(.passUnretained(self), from: before)
  }

  /// Takes a place, and waits for one if necessary. Matching C function: `dispatch_semaphore_wait`.
  @available(*, noasync, message: "blocks the thread; await a task instead")
  @inlinable
  public final func wait() {
    // ORDERING: acquiring; pairs with the releasing addition in `signal`.
    if value.wrappingSubtract(1, ordering: .acquiring).oldValue > 0 { return }
    waitForGrant()
  }

  /// Takes a place, and waits for one until `timeout` if necessary. A timeout in the past only tests the semaphore. A
  /// wait that times out leaves the semaphore unchanged. Matching C function: `dispatch_semaphore_wait`.
  /// - Parameter timeout: the time after which the caller returns; a past one only looks.
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

  /// Adds a grant, and wakes the waiters that may take one.
  fileprivate final func deliver() {
    // ORDERING: sequentially consistent; publishes to the waiter what the signaller did, and precedes the load of
    // `sleepers` below. The waiter increments `sleepers` before its last load of `grants`: one of the two sees the
    // other.
    let granted = Int32(bitPattern: grants.wrappingAdd(1, ordering: .sequentiallyConsistent).newValue)
    // Below zero every grant is taken in advance. At zero all of those waiters may continue.
    guard granted >= 0 else { return }
    // ORDERING: sequentially consistent; pairs with the addition to `sleepers` in `sleep`.
    guard sleepers.load(ordering: .sequentiallyConsistent) > 0 else { return }
    Futex.wake(grants, count: granted == 0 ? .max : 1)
  }

  @usableFromInline @inline(never)
  final func waitForGrant() { _ = waitForGrant(.never) }

  /// Waits for a grant, after the value was decremented below zero.
  private final func waitForGrant(_ deadline: Deadline) -> DispatchTimeoutResult {
    if case .immediate = deadline {
    } else if Spin.wait(rounds: Spin.waitRounds, until: { takeGrant() == nil }) {
      return .success
    }
    var result = DispatchTimeoutResult.success
    let semaphore = Unmanaged.passUnretained(self).toOpaque()
    TaskWaits.block("DispatchSemaphore.wait()", until: deadline, .semaphore, semaphore) {
      result = sleep(until: deadline)
    }
    return result
  }

  private final func sleep(until deadline: Deadline) -> DispatchTimeoutResult {
    // ORDERING: sequentially consistent; pairs with the load of `sleepers` in `deliver`, and precedes the loads of
    // `grants`.
    sleepers.wrappingAdd(1, ordering: .sequentiallyConsistent)
    // ORDERING: relaxed; a late decrement only costs a signaller a futile wake-up.
    defer { sleepers.wrappingSubtract(1, ordering: .relaxed) }
    while true {
      guard let seen = takeGrant() else { return .success }
      if Futex.waitForOthers(grants, expected: seen, deadline: deadline) == .timedOut {
        return withdraw() || !takeOwedGrant() ? .timedOut : .success
      }
    }
  }

  /// - Returns: nil if it has taken a grant, else the value of `grants` that it saw.
  private final func takeGrant() -> UInt32? {
    // ORDERING: sequentially consistent; the last load before sleeping follows the addition to `sleepers`; see
    // `deliver`.
    var seen = grants.load(ordering: .sequentiallyConsistent)
    while Int32(bitPattern: seen) > 0 {
      // ORDERING: acquiring, pairs with the addition in `deliver`; releasing, so that the late waiter to whom this
      // grant belonged sees the further waiter in `value`.
      let (taken, original) = grants.weakCompareExchange(
        expected: seen, desired: seen - 1, ordering: .acquiringAndReleasing)
      if taken { return nil }
      seen = original
    }
    return seen
  }

  /// Takes the grant of a signal that has counted this late waiter. If the grant has not come, the waiter takes it in
  /// advance, so that no other waiter can, and sleeps until it comes: the signaller still uses the semaphore until
  /// then.
  /// - Returns: false if another waiter had taken the grant; this waiter has then withdrawn.
  private final func takeOwedGrant() -> Bool {
    // ORDERING: sequentially consistent; as in `takeGrant`, and before the load of `value` in `withdraw`.
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
  /// - Returns: false if a signal has counted this thread meanwhile: the thread must take its grant.
  private final func withdraw() -> Bool {
    // ORDERING: relaxed; the undo publishes nothing.
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

/// The slow path of a signal. No method, and called last: with all that it needs in its parameters, a signal needs no
/// stack frame, which would take half of its instructions.
@usableFromInline
enum SemaphoreGrant {
  /// Grants a place to a waiter, for a signal that found the value below zero, or at `Int.max`.
  /// - Returns: 1, the result of the signal.
  @usableFromInline @inline(never)
  static func give(_ semaphore: Unmanaged<DispatchSemaphore>, from before: Int) -> Int {
    if before == .max {
      Trap.clientBug(311, "signal() on a semaphore with Int.max places: more signals than can be counted")
    }
    // The waiter keeps the semaphore alive until it has the grant. It may then release the last reference, even to an
    // object that a C program is signalling.
    let kept = semaphore.retain()
    defer { kept.release() }
    kept._withUnsafeGuaranteedRef { $0.deliver() }
    return 1
  }
}
