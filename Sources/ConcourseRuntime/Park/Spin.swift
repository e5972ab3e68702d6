internal import CConcourse

/// How long the engine spins before it sleeps, in spin-hint rounds: one place to tune.
package enum Spin {
  /// A lock is held for nanoseconds, and eight threads may want it. If the wait is longer, its holder has lost the processor.
  static let lockRounds = 128
  /// The most rounds between two looks at a lock.
  private static let longestLockPause = 16
  /// A thread that waits for a hand-over or a signal: about the time that putting it to sleep and waking it takes.
  package static let waitRounds = 400
  /// How often a worker without work looks for an entry before it spins long or parks.
  static let searchRounds = 40
  /// The pause of a drain that has caught up with its producers before it checks for more, and the number of such
  /// checks before it releases its queue.
  static let lingerRounds = 64
  static let lingerLooks = 2
  /// A worker measures this many entries together: reading the clock costs as much as a short entry.
  static let measuredEntries: UInt32 = 4
  /// Spinning this long shows whether the other thread is running on another processor.
  private static let firstRounds = 20
  /// A yield of at least this many nanoseconds gave the processor to another thread.
  private static let sharedYield: UInt64 = 1_500
  /// A yield of at least this many nanoseconds gave the processor to a thread that has no part in the wait.
  private static let longYield: UInt64 = 50_000
  /// The number of waits of the process that do not yield after a long yield. They cost about as much as the yield
  /// did. The number doubles while yields stay long.
  private static let leastPenalty: Int32 = 1_000
  private static let mostPenalty: Int32 = 1_000_000

  /// A sleep of so many nanoseconds costs more than spinning for as long: the call that ends it, and the time in which
  /// the processors change threads and wake up. A shorter sleep ended because the other thread had waited for this one's
  /// processor.
  private static let shortSleep: Range<UInt32> = 12_000..<80_000
  /// How many nanoseconds a thread spins if its last sleep was short. It yields the processor after so many looks, and at
  /// most so often, should the clock stand.
  private static let longSpin: UInt64 = 60_000
  private static let looksForYield = 64
  private static let mostYields = 250
  /// A long spin that takes less than this many nanoseconds was worth it.
  private static let quickSpin: UInt64 = 20_000
  /// The number of further waits of a thread that do not spin long after two that were not worth it. It doubles with each
  /// further one.
  private static let leastBar: UInt16 = 8
  private static let mostDoublings: UInt8 = 7

  // ORDERING: relaxed, both throughout; heuristics that publish nothing.
  private static let processors = Atomic<Int32>(.max)
  /// The number of threads that spin long. A forked child may begin with some that it does not have.
  static let longSpinners = Atomic<Int32>(0)

  /// Notes on how many processors the process runs. The pool, which looks at the machine, calls it.
  static func note(processors: Int) {
    // ORDERING: relaxed; as above.
    self.processors.store(Int32(clamping: processors), ordering: .relaxed)
  }

  // ORDERING: relaxed throughout; heuristics that publish nothing. Written only where processors are scarce.
  /// The number of further waits of the process that do not yield. May fall below zero.
  private static let debt = Atomic<Int32>(0)
  /// The debt that the next long yield sets.
  private static let penalty = Atomic<Int32>(leastPenalty)

  /// Spins until `take` has taken a lock. Each look at a lock that others use takes its line away from them, so the looks
  /// become less frequent.
  /// - Returns: whether it has taken it.
  @inline(__always)
  static func untilTaken(_ take: () -> Bool) -> Bool {
    var (rounds, pauses) = (0, 2)
    while !take() {
      if rounds >= lockRounds { return false }
      for _ in 0..<pauses { Processor.pause() }
      rounds += pauses
      pauses = min(pauses * 2, longestLockPause)
    }
    return true
  }

  /// Spins until `done` holds. Yields the processor once; in a long spin, again and again.
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
    let yielded = yield()
    note(yield: yielded)
    // With one processor, nothing changes while this thread has it.
    // ORDERING: relaxed; a heuristic.
    if processors.load(ordering: .relaxed) == 1 { return done() }
    for _ in 0..<rounds {
      if done() { return true }
      Processor.pause()
    }
    guard shortSleep.contains(thread.pointee.last_sleep) else { return done() }
    return waitLonger(thread, yielded, until: done)
  }

  /// Spins on. Two threads that answer each other would otherwise both sleep at each step if waking a thread takes longer
  /// than the first spin: once one of them is still awake when the answer comes, neither sleeps any more.
  ///
  /// A thread whose long spins are not worth it soon stops making them: one that waits 50 µs for each signal would
  /// otherwise keep a processor busy. It stops after a yield that has let another thread run, since that may be the thread
  /// that it waits for. Not every yield does where another thread wants the processor: beside one that computes, the kernel
  /// often goes on with the yielding thread, whose spin then lasts its time. And no more threads spin long than the process
  /// has processors, or its share of them by a quota as soon as the pool has read that (`PoolSize.settleWidth`).
  /// - Parameter yielded: how many nanoseconds the yield before took.
  /// - Returns: whether `done` held.
  @inline(never)
  private static func waitLonger(
    _ thread: UnsafeMutablePointer<concourse_thread>, _ yielded: UInt64, until done: () -> Bool
  ) -> Bool {
    if yielded >= sharedYield {
      thread.pointee.last_sleep = 0
      return done()
    }
    if thread.pointee.long_spins_barred > 0 {
      thread.pointee.long_spins_barred -= 1
      return done()
    }
    // ORDERING: relaxed, all; see `longSpinners`.
    defer { longSpinners.wrappingSubtract(1, ordering: .relaxed) }
    let others = longSpinners.wrappingAdd(1, ordering: .relaxed).oldValue
    guard others < processors.load(ordering: .relaxed) else { return done() }
    let began = Clock.uptime()
    var now = began
    for _ in 0..<mostYields where now &- began < longSpin {
      for _ in 0..<looksForYield {
        if done() {
          note(longSpin: Clock.uptime() &- began, thread)
          return true
        }
        Processor.pause()
      }
      let yielded = yield()
      note(yield: yielded)
      if yielded >= sharedYield {
        thread.pointee.last_sleep = 0
        return done()
      }
      now = Clock.uptime()
    }
    note(longSpin: longSpin, thread)
    return done()
  }

  /// Adjusts to a long spin of `duration` nanoseconds.
  static func note(longSpin duration: UInt64, _ thread: UnsafeMutablePointer<concourse_thread>) {
    let slow = thread.pointee.slow_spins
    guard duration >= quickSpin else {
      thread.pointee.slow_spins = 0
      return
    }
    if slow > 0 { thread.pointee.long_spins_barred = leastBar << (slow - 1) }
    thread.pointee.slow_spins = min(slow + 1, mostDoublings + 1)
  }

  /// Whether a yield is likely to be short. Uses up one wait of the debt.
  static func mayYield(_ thread: UnsafeMutablePointer<concourse_thread>) -> Bool {
    if thread.pointee.nice > 0 { return false }
    // ORDERING: relaxed, both; see `debt`.
    guard debt.load(ordering: .relaxed) > 0 else { return true }
    debt.wrappingSubtract(1, ordering: .relaxed)
    return false
  }

  /// - Returns: the duration of the yield in nanoseconds. Where the process cannot yield, that of one to another thread,
  ///   since one may want this processor.
  @inline(never)
  private static func yield() -> UInt64 {
    let began = Clock.uptime()
    return Processor.yield() ? Clock.uptime() &- began : sharedYield
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
