/// A small mutual-exclusion lock for the engine's slow paths: spins briefly, then sleeps.
///
/// Held for a few dozen instructions only; no client code ever runs under one. The word is 0 when
/// free, 1 when held, 2 when held and somebody may sleep on it.
struct Lock: ~Copyable {
  private let word = Atomic<UInt32>(0)

  /// Takes the lock, waiting as long as it takes.
  @inline(__always)
  func lock() {
    // ORDERING: acquiring; pairs with the releasing exchange in `unlock`, publishes what it guards.
    if word.compareExchange(expected: 0, desired: 1, ordering: .acquiring).exchanged { return }
    lockSlowly()
  }

  /// Takes the lock if nobody holds it.
  @inline(__always)
  func tryLock() -> Bool {
    // ORDERING: acquiring as in `lock`; the relaxed look first keeps losers from writing the line.
    word.load(ordering: .relaxed) == 0
      && word.compareExchange(expected: 0, desired: 1, ordering: .acquiring).exchanged
  }

  /// Gives the lock back.
  @inline(__always)
  func unlock() {
    // ORDERING: releasing; pairs with the acquiring operations above.
    if word.exchange(0, ordering: .releasing) == 2 { Futex.wake(word, count: 1) }
  }

  /// Runs `body` under the lock.
  @inline(__always)
  func withLock<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
    lock()
    defer { unlock() }
    return try body()
  }

  @inline(never)
  private func lockSlowly() {
    for _ in 0..<Spin.lockRounds {
      Processor.pause()
      if tryLock() { return }
    }
    // ORDERING: acquiring as in `lock`. Writing 2 claims the lock and says that sleepers may exist; one
    // wake-up too many is the price of never losing one.
    while word.exchange(2, ordering: .acquiring) != 0 {
      guard Process.isForkedChild else {
        _ = Futex.wait(word, expected: 2)
        continue
      }
      // A thread of the parent's that held the lock at the fork does not exist here and never unlocks it.
      if Futex.wait(word, expected: 2, deadline: .uptime(Clock.uptime() &+ Self.patienceInChild)) == .timedOut
      {
        Trap.clientBug(
          "a lock of the runtime is needed in a forked child process, and a thread of the parent held it at the fork; "
            + "only exec and sync on idle queues work after fork")
      }
    }
  }

  /// A second. A lock is held for some instructions, so its holder does not exist in the child.
  private static var patienceInChild: UInt64 { 1_000_000_000 }
}
