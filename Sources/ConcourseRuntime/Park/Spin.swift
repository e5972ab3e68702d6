internal import CConcourse

/// How long the engine spins before it sleeps, in spin-hint rounds: one place to tune.
package enum Spin {
  /// A lock is held for nanoseconds; if the wait is longer, its holder has lost the processor.
  static let lockRounds = 40
  /// A thread that waits for a hand-over or a signal: about the time that putting it to sleep and waking it takes.
  package static let waitRounds = 400
  /// A worker without work searches this many times before it parks.
  static let searchRounds = 40
  /// The pause of a drain that has caught up with its producers before it checks for more, and the number of such
  /// checks before it releases its queue.
  static let lingerRounds = 64
  static let lingerLooks = 2
  /// A worker measures this many entries together: reading the clock costs as much as a short entry.
  static let measuredEntries: UInt32 = 4
  /// Spinning this long shows whether the other thread is running on another processor.
  private static let firstRounds = 20
  /// A yield of at least this many nanoseconds gave the processor to a thread that has no part in the wait.
  private static let longYield: UInt64 = 50_000
  /// The number of waits of the process that do not yield after a long yield. They cost about as much as the yield
  /// did. The number doubles while yields stay long.
  private static let leastPenalty: Int32 = 1_000
  private static let mostPenalty: Int32 = 1_000_000

  // ORDERING: relaxed; a heuristic that publishes nothing.
  private static let hasOneProcessor = Atomic<Bool>(false)

  /// Notes on how many processors the process runs. The pool, which looks at the machine, calls it.
  static func note(processors: Int) {
    // ORDERING: relaxed; as above.
    hasOneProcessor.store(processors == 1, ordering: .relaxed)
  }

  // ORDERING: relaxed throughout; heuristics that publish nothing. Written only where processors are scarce.
  /// The number of further waits of the process that do not yield. May fall below zero.
  private static let debt = Atomic<Int32>(0)
  /// The debt that the next long yield sets.
  private static let penalty = Atomic<Int32>(leastPenalty)

  /// Spins until `done` holds, and yields the processor once.
  ///
  /// The thread that will make `done` true may be queued behind this thread on this processor: the kernel tends to
  /// put a woken thread beside its waker. So this thread yields after a short spin, or at once if it has just woken a
  /// thread. If no other thread wants the processor, the yield costs one system call, and the spinning continues.
  ///
  /// On a busy machine a yield costs milliseconds: the kernel takes a whole time slice from the yielding thread, and
  /// spinning uses up the credit that would let the thread run at once when it is woken. So after one long yield the
  /// threads of this process sleep without yielding for a while. A thread with a lowered priority never yields: its
  /// slice counts many times over, and while it searches, other workers are not woken.
  /// - Returns: whether `done` held.
  @inline(__always)
  package static func wait(rounds: Int, until done: () -> Bool) -> Bool {
    let thread = CurrentThread.state
    if thread.pointee.has_woken == 0 {
      for _ in 0..<firstRounds {
        if done() { return true }
        Processor.pause()
      }
    }
    thread.pointee.has_woken = 0
    if done() { return true }
    guard mayYield(thread) else { return false }
    note(yield: yield())
    // With one processor, nothing changes while this thread has it.
    // ORDERING: relaxed; a heuristic.
    for _ in 0..<(hasOneProcessor.load(ordering: .relaxed) ? 0 : rounds) {
      if done() { return true }
      Processor.pause()
    }
    return done()
  }

  /// Whether a yield is likely to be short. Uses up one wait of the debt.
  static func mayYield(_ thread: UnsafeMutablePointer<concourse_thread>) -> Bool {
    if thread.pointee.nice > 0 { return false }
    // ORDERING: relaxed, both; see `debt`.
    guard debt.load(ordering: .relaxed) > 0 else { return true }
    debt.wrappingSubtract(1, ordering: .relaxed)
    return false
  }

  /// - Returns: the duration of the yield in nanoseconds.
  @inline(never)
  private static func yield() -> UInt64 {
    let began = Clock.uptime()
    Processor.yield()
    return Clock.uptime() &- began
  }

  /// Adjusts debt and penalty to a yield of `yield` nanoseconds.
  static func note(yield: UInt64) {
    // ORDERING: relaxed, all; see `debt`.
    let cost = penalty.load(ordering: .relaxed)
    if yield >= longYield {
      // ORDERING: relaxed, both; see `debt`.
      debt.store(cost, ordering: .relaxed)
      penalty.store(min(cost * 2, mostPenalty), ordering: .relaxed)
    } else if cost != leastPenalty {
      penalty.store(leastPenalty, ordering: .relaxed)
    }
  }
}
