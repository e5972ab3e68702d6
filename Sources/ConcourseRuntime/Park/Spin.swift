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
  /// Spinning this long shows whether the other side runs on another processor already.
  private static let firstRounds = 20
  /// Nanoseconds after which a yielded processor was taken by somebody with no part in the wait.
  private static let longYield: UInt64 = 50_000
  /// Waits that sleep at once after a long yield; doubled while yields stay long.
  private static let leastPenalty: Int32 = 100
  private static let mostPenalty: Int32 = 100_000

  /// Spins until `done` holds, giving the processor away once on the way.
  ///
  /// Whoever is to make `done` true may be queued behind this thread on this very processor: the kernel
  /// likes to put a woken thread beside the one that woke it. So after a short first look, or at once
  /// when this thread has just woken somebody, it yields; if nobody else wants the processor, that
  /// costs one system call, and the spinning goes on.
  ///
  /// On a busy machine a yield may cost milliseconds, because somebody else computes with the processor. A
  /// thread that has met that sleeps at once the next times: the kernel wakes a sleeper sooner than it lets
  /// a yielder go on.
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
    guard thread.pointee.spin_debt == 0 else {
      thread.pointee.spin_debt -= 1
      return false
    }
    yield(thread)
    // With one processor, nothing changes while this thread has it.
    for _ in 0..<(PoolSize.width > 1 ? rounds : 0) {
      if done() { return true }
      Processor.pause()
    }
    return done()
  }

  @inline(never)
  private static func yield(_ thread: UnsafeMutablePointer<concourse_thread>) {
    let began = Clock.uptime()
    Processor.yield()
    if Clock.uptime() &- began < longYield {
      thread.pointee.spin_penalty = leastPenalty
    } else {
      thread.pointee.spin_debt = max(thread.pointee.spin_penalty, leastPenalty)
      thread.pointee.spin_penalty = min(thread.pointee.spin_debt * 2, mostPenalty)
    }
  }
}
