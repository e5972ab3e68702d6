/// Lets tests refuse system calls: a refused call fails without being made.
///
/// Without refusals it costs one relaxed load for each system call.
enum SystemScript {
  /// The plan for one kind of call.
  private struct Plan {
    /// Calls to let through first.
    var spared: Int
    /// Calls to refuse after those.
    var refused: Int
    let errno: Int32
  }

  private static let active = Atomic<Bool>(false)
  private static let lock = Lock()
  // SAFETY: GUARDED BY `lock`, both.
  private nonisolated(unsafe) static var plans: [SystemCall: Plan] = [:]
  private nonisolated(unsafe) static var counts: [SystemCall: Int] = [:]

  @inline(__always)
  static var isActive: Bool {
    // ORDERING: relaxed; a test sets its refusals before it starts the work that meets them.
    active.load(ordering: .relaxed)
  }

  /// Lets the next `spared` calls through, and refuses the `times` calls that follow with `errno`.
  static func refuse(_ call: SystemCall, with errno: Int32, times: Int = .max, after spared: Int = 0) {
    lock.withLock { plans[call] = Plan(spared: spared, refused: times, errno: errno) }
    // ORDERING: relaxed; as in `isActive`.
    active.store(true, ordering: .relaxed)
  }

  /// Removes all refusals and counts.
  static func clear() {
    // ORDERING: relaxed; as in `isActive`.
    active.store(false, ordering: .relaxed)
    lock.withLock { (plans, counts) = ([:], [:]) }
  }

  /// How often `call` has been made or refused since a script became active.
  static func count(_ call: SystemCall) -> Int { lock.withLock { counts[call] ?? 0 } }

  @inline(never)
  static func run(_ call: SystemCall, _ body: () -> Int) -> Int {
    let refusal = lock.withLock { () -> Int32? in
      counts[call, default: 0] += 1
      guard var plan = plans[call] else { return nil }
      defer { plans[call] = plan }
      if plan.spared > 0 {
        plan.spared -= 1
        return nil
      }
      guard plan.refused > 0 else { return nil }
      plan.refused -= 1
      return plan.errno
    }
    return refusal.map { -Int($0) } ?? body()
  }
}
