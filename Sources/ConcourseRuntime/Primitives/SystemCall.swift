internal import Glibc

/// Names for thread creation and for the system calls of ConcourseEvents that can fail for want of resources or in a
/// sandbox, so that tests can refuse them (`SystemScript`).
@usableFromInline
package enum SystemCall: UInt8, CaseIterable, Sendable {
  case epollCreate, epollControl, epollWait, poll
  case timerCreate, timerSet, eventCreate
  case inotifyCreate, inotifyAdd, inotifyRemove
  case processOpen, processWait
  case signalAction
  case open, close, read, write, seek, status, control, deviceControl
  case ringSetup, ringEnter, ringRegister
  case map
  case socket, bind
  case thread
}

/// ConcourseEvents enters the kernel only through this type.
@usableFromInline
package enum System {
  /// Makes a call, and repeats it if a signal interrupted it.
  /// - Parameter body: the call; returns its result, or the negated errno.
  /// - Returns: the result, or the negated errno; never `-EINTR`.
  @inlinable @inline(__always)
  package static func call(_ which: SystemCall, _ body: () -> Int) -> Int {
    while true {
      let result = SystemScript.isActive ? SystemScript.run(which, body) : body()
      if result >= 0 || !wasInterrupted(result) { return result }
    }
  }

  @usableFromInline
  static func wasInterrupted(_ result: Int) -> Bool { result == -Int(EINTR) }

  /// Converts the result of a C library call for `call`.
  @inline(__always)
  package static func result(_ value: Int) -> Int { value >= 0 ? value : -Int(errno) }

  /// Likewise, for calls that return an `int`.
  @inline(__always)
  package static func result(_ value: Int32) -> Int { value >= 0 ? Int(value) : -Int(errno) }
}

/// Lets tests refuse system calls: a refused call fails without being made. Only `close` is made.
///
/// Without refusals it costs one relaxed load for each system call.
@usableFromInline
package enum SystemScript {
  /// The plan for one kind of call.
  private struct Plan {
    /// Calls to let through first.
    var spared: Int
    /// Calls to refuse after those.
    var refused: Int
    let errno: Int32
  }

  @usableFromInline static let active = Atomic<Bool>(false)
  /// Gets the call, and returns its result.
  typealias Detour = @Sendable (_ call: () -> Int) -> Int
  private typealias State = (
    plans: [SystemCall: Plan], counts: [SystemCall: Int], detours: [SystemCall: Detour]
  )
  // SAFETY: GUARDED BY `mutex`.
  nonisolated(unsafe) private static var state: State = ([:], [:], [:])
  // `Lock` stands above the primitives, and the thread sanitizer does not see a contended `Mutex`.
  // SAFETY: a zeroed mutex is an initialized one; it is never freed.
  nonisolated(unsafe) private static let mutex: UnsafeMutablePointer<pthread_mutex_t> = {
    let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    mutex.initialize(to: pthread_mutex_t())
    return mutex
  }()

  private static func withState<Result>(_ body: (inout State) -> Result) -> Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return body(&state)
  }

  @inlinable @inline(__always)
  package static var isActive: Bool {
    // ORDERING: relaxed; a test sets its refusals before it starts the work that meets them.
    active.load(ordering: .relaxed)
  }

  /// Lets the next `spared` calls through, and refuses the `times` calls that follow with `errno`.
  static func refuse(_ call: SystemCall, with errno: Int32, times: Int = .max, after spared: Int = 0) {
    withState { $0.plans[call] = Plan(spared: spared, refused: times, errno: errno) }
    // ORDERING: relaxed; as in `isActive`.
    active.store(true, ordering: .relaxed)
  }

  /// Runs `detour` in place of each call, for example to hold the thread before or after the call.
  static func redirect(_ call: SystemCall, through detour: @escaping Detour) {
    withState { $0.detours[call] = detour }
    // ORDERING: relaxed; as in `isActive`.
    active.store(true, ordering: .relaxed)
  }

  /// Removes all refusals, detours and counts.
  static func clear() {
    // ORDERING: relaxed; as in `isActive`.
    active.store(false, ordering: .relaxed)
    withState { $0 = ([:], [:], [:]) }
  }

  /// How often `call` has been made or refused since a script became active.
  static func count(_ call: SystemCall) -> Int { withState { $0.counts[call] ?? 0 } }

  @usableFromInline @inline(never)
  package static func run(_ call: SystemCall, _ body: () -> Int) -> Int {
    let refusal = withState { state -> Int32? in
      state.counts[call, default: 0] += 1
      guard var plan = state.plans[call] else { return nil }
      defer { state.plans[call] = plan }
      if plan.spared > 0 {
        plan.spared -= 1
        return nil
      }
      guard plan.refused > 0 else { return nil }
      plan.refused -= 1
      return plan.errno
    }
    guard let refusal else {
      if let detour = withState({ $0.detours[call] }) { return detour(body) }
      return body()
    }
    // The kernel releases a descriptor even if `close` reports an error.
    if call == .close { _ = body() }
    return -Int(refusal)
  }
}
