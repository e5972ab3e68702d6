/// A mutual-exclusion lock for the engine's slow paths. It spins briefly, then sleeps.
///
/// A holder runs a few dozen instructions, and no client code. The word is 0 when free, 1 when held, and `contended`
/// when held and a thread may be sleeping on it.
@usableFromInline
package struct Lock: ~Copyable, Sendable {
  @usableFromInline let word: Atomic<UInt32>
  #if DEBUG
    @usableFromInline let rank: LockRank
  #endif

  // Inlined into ConcourseEvents, as the functions below.
  @inlinable
  package init(_ rank: LockRank) {
    word = Atomic(0)
    #if DEBUG
      self.rank = rank
    #endif
  }

  @inlinable @inline(__always)
  package func lock() {
    #if DEBUG
      rank.willTake()
    #endif
    // ORDERING: acquiring; pairs with the releasing exchange in `unlock`, which publishes the guarded data.
    if !word.compareExchange(expected: 0, desired: 1, ordering: .acquiring).exchanged { lockSlowly() }
    PlainMemory.writes(beside: word)
  }

  /// The word of a lock for which threads may sleep. No other word of the engine has this value while a thread sleeps for
  /// it, so that `sleeping.c` of CConcourse can tell a lock from an event.
  @inlinable
  package static var contended: UInt32 { @inline(__always) get { 1 << 31 } }

  @inlinable @inline(__always)
  package func tryLock() -> Bool {
    // ORDERING: acquiring as in `lock`; the relaxed load first keeps failing attempts from writing the cache line.
    guard
      word.load(ordering: .relaxed) == 0
        && word.compareExchange(expected: 0, desired: 1, ordering: .acquiring).exchanged
    else { return false }
    #if DEBUG
      rank.didTake()
    #endif
    PlainMemory.writes(beside: word)
    return true
  }

  /// Spins for the lock as `lock` does, but does not sleep.
  /// - Returns: whether the caller holds the lock.
  @inline(never)
  func tryLockBriefly() -> Bool { Spin.untilTaken { tryLock() } }

  @inlinable @inline(__always)
  package func unlock() {
    #if DEBUG
      rank.willRelease()
    #endif
    PlainMemory.writes(beside: word)
    // ORDERING: releasing; pairs with the acquiring operations in `lock`, `tryLock` and `lockSlowly`.
    if word.exchange(0, ordering: .releasing) == Self.contended { Futex.wake(word, count: 1) }
  }

  /// Frees a lock that a thread of the parent may have held at the fork.
  func forgetHolder() {
    // ORDERING: relaxed; the child has one thread.
    word.store(0, ordering: .relaxed)
  }

  @inlinable @inline(__always)
  package func withLock<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure)
    -> Result
  {
    lock()
    defer { unlock() }
    return try body()
  }

  @inline(never) @usableFromInline
  func lockSlowly() {
    Processor.pause()
    if Spin.untilTaken({ tryLock() }) { return }
    // ORDERING: acquiring as in `lock`. Writing `contended` acquires the lock and says that sleepers may exist. This may
    // cause a futile wake-up, but loses none.
    var waits = 0
    while word.exchange(Self.contended, ordering: .acquiring) != 0 {
      guard Process.hasLeftThreads else {
        _ = Futex.wait(word, expected: Self.contended)
        continue
      }
      // A thread of the parent that held the lock at the fork does not exist here, and never unlocks it.
      let deadline = Deadline.uptime(Clock.uptime() &+ Self.waitInChild)
      guard Futex.wait(word, expected: Self.contended, deadline: deadline) == .timedOut else { continue }
      waits += 1
      if waits == Self.waitsInChild {
        Trap.clientBug(
          408,
          "a lock of the runtime is needed in a forked child process, and a thread of the parent held it at the fork; "
            + "only exec and sync on idle queues work after fork")
      }
    }
  }

  /// One second in all. A holder needs only some instructions, so after that time it does not exist in the child.
  ///
  /// The child may have made threads of its own, whose holders wait longer on a busy machine. The child of a process with
  /// one thread has no others, and so waits without end. While the child is stopped (SIGSTOP, a debugger), the clock runs on
  /// for holder and waiter. That ends one of the ten waits, and the holder has the others to go on.
  private static var waitInChild: UInt64 { 100_000_000 }
  private static var waitsInChild: Int { 10 }
}
