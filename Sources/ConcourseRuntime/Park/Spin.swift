internal import CConcourse

/// How long the engine spins before it sleeps, in spin-hint rounds: one place to tune.
enum Spin {
  /// A lock is held for nanoseconds; a longer wait means that its holder lost the processor.
  static let lockRounds = 40
  /// A thread waiting for a hand-over or a signal: about the time it takes to put it to sleep and wake it.
  static let waitRounds = 400
  /// A worker out of work looks around this often before it parks.
  static let searchRounds = 40
  /// A drain that has caught up with a stream waits this long before it looks for more, and looks so often
  /// before it lets go of its queue.
  static let lingerRounds = 64
  static let lingerLooks = 2
  /// A worker measures so many entries at a time: the clock costs as much as a short one.
  static let measuredEntries: UInt32 = 4
  /// Spinning this long shows whether the other side runs on another processor already.
  private static let firstRounds = 20
  /// Nanoseconds after which a yielded processor was taken by somebody with no part in the wait.
  private static let longYield: UInt64 = 50_000
  /// Waits of the process that sleep at once after a long yield, as many as cost about what the yield did;
  /// doubled while yields stay long.
  private static let leastPenalty: Int32 = 1_000
  private static let mostPenalty: Int32 = 1_000_000

  // ORDERING: relaxed throughout; numbers to steer by. Written only where processors are scarce.
  /// Waits of the process still to come that do not yield. May fall below zero.
  private static let debt = Atomic<Int32>(0)
  /// What the next long yield costs.
  private static let penalty = Atomic<Int32>(leastPenalty)

  /// Spins until `done` holds, giving the processor away once on the way.
  ///
  /// Whoever is to make `done` true may be queued behind this thread on this very processor: the kernel
  /// likes to put a woken thread beside the one that woke it. So after a short first look, or at once
  /// when this thread has just woken somebody, it yields; if nobody else wants the processor, that
  /// costs one system call, and the spinning goes on.
  ///
  /// On a busy machine a yield costs milliseconds: the kernel takes a whole time slice from the yielder, and
  /// spinning spends what would let it run at once when it is woken. So after one long yield the threads of
  /// this process sleep at once for a while. A lowered thread never yields: its slice counts many times over,
  /// and a worker that searches all the while keeps others from being woken.
  /// - Returns: whether `done` held.
  @inline(__always)
  static func wait(rounds: Int, until done: () -> Bool) -> Bool {
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
    for _ in 0..<(PoolSize.width > 1 ? rounds : 0) {
      if done() { return true }
      Processor.pause()
    }
    return done()
  }

  /// Whether a yield is likely to be short. Pays off one wait of the debt.
  static func mayYield(_ thread: UnsafeMutablePointer<concourse_thread>) -> Bool {
    if thread.pointee.nice > 0 { return false }
    // ORDERING: relaxed, both; see above.
    guard debt.load(ordering: .relaxed) > 0 else { return true }
    debt.wrappingSubtract(1, ordering: .relaxed)
    return false
  }

  /// - Returns: the nanoseconds until the thread went on.
  @inline(never)
  private static func yield() -> UInt64 {
    let began = Clock.uptime()
    Processor.yield()
    return Clock.uptime() &- began
  }

  /// A yield took so many nanoseconds.
  static func note(yield: UInt64) {
    // ORDERING: relaxed, all; see above.
    let cost = penalty.load(ordering: .relaxed)
    if yield >= longYield {
      // ORDERING: relaxed, both; see above.
      debt.store(cost, ordering: .relaxed)
      penalty.store(min(cost * 2, mostPenalty), ordering: .relaxed)
    } else if cost != leastPenalty {
      penalty.store(leastPenalty, ordering: .relaxed)
    }
  }
}
