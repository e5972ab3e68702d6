/// A one-shot event between exactly one waiter and one signaller.
///
/// The waiter may free the event as soon as the signal is visible, so the signaller's exchange is its last access to
/// this memory. The futex call that may follow uses the address only as a key.
package struct ThreadEvent: ~Copyable {
  private enum Word {
    static let unset: UInt32 = 0
    static let set: UInt32 = 1
    static let asleep: UInt32 = 2
  }

  private let word = Atomic<UInt32>(Word.unset)

  package init() {}

  /// Resets the event. Only its waiter calls this, while no signal can be in flight.
  func reset() {
    // ORDERING: relaxed; the next signaller learns of this event later, through a releasing operation of the waiter.
    word.store(Word.unset, ordering: .relaxed)
  }

  var isSet: Bool {
    // ORDERING: acquiring; pairs with the exchange in `signal`, which publishes what the signaller did before.
    word.load(ordering: .acquiring) == Word.set
  }

  package func signal() {
    // ORDERING: acquiring and releasing; pairs with the acquiring operations of the waiter, and publishes everything
    // before it. If it reads `asleep`, it follows the waiter's announcement.
    if word.exchange(Word.set, ordering: .acquiringAndReleasing) == Word.asleep {
      Futex.wake(word, count: 1)
    }
  }

  /// Waits for the signal. Spins first, then notifies the pool and sleeps.
  /// - Parameters:
  ///   - wait: what the thread waits for, and
  ///   - object: which one, for recordings.
  package func wait(for wait: Recording.Wait, _ object: UnsafeRawPointer?) {
    self.wait(for: wait, object) { _ = $0(.never) }
  }

  /// As above, but if it would sleep, it calls `around`, which calls its argument until that returns true: it sleeps
  /// until the signal or a deadline.
  func wait(
    for wait: Recording.Wait, _ object: UnsafeRawPointer?, _ around: ((Deadline) -> Bool) -> Void
  ) {
    if Spin.wait(rounds: Spin.waitRounds, until: { isSet }) { return }
    Recording.wait(wait, object) { around { deadline in BlockedSection.run { sleep(until: deadline) } } }
  }

  /// Waits without notifying the pool: for idle workers and for the engine's own threads.
  /// - Returns: false if `deadline` passed first. The event stays usable.
  func park(until deadline: Deadline) -> Bool {
    isSet || sleep(until: deadline)
  }

  private func sleep(until deadline: Deadline) -> Bool {
    while true {
      // ORDERING: acquiring on failure, pairs with `signal`; the announcement publishes nothing.
      let (announced, word) = self.word.compareExchange(
        expected: Word.unset, desired: Word.asleep, ordering: .acquiring)
      if !announced && word == Word.set { return true }
      if Futex.wait(self.word, expected: Word.asleep, deadline: deadline) == .timedOut {
        // ORDERING: acquiring on failure, pairs with `signal`: the signal arrived after all.
        return !self.word.compareExchange(
          expected: Word.asleep, desired: Word.unset, ordering: .acquiring
        ).exchanged
      }
      if isSet { return true }
    }
  }
}

/// A stretch in which the calling thread sleeps in a wait of the engine, or perhaps in a system call. A worker gives its
/// processor to another worker meanwhile, so that the thread that will wake it can run.
package enum BlockedSection {
  /// As below, and a recording shows the sleep as a wait for `object`.
  package static func run<Result>(
    _ wait: Recording.Wait, _ object: UnsafeRawPointer?, _ sleep: () -> Result
  ) -> Result {
    Recording.wait(wait, object) { run(sleep) }
  }

  package static func run<Result>(_ sleep: () -> Result) -> Result {
    // A wait within the section.
    guard CurrentThread.state.pointee.blocked_since == 0 else { return sleep() }
    // For `concourse report`.
    CurrentThread.state.pointee.blocked_since = Clock.uptime()
    defer { CurrentThread.state.pointee.blocked_since = 0 }
    let delivering = WorkerThread.delivering
    guard let worker = WorkerThread.current ?? delivering else { return sleep() }
    let searches = delivering != nil
    worker.pointee.band._withUnsafeGuaranteedRef { $0.workerWillWait(worker, searches: searches) }
    defer { worker.pointee.band._withUnsafeGuaranteedRef { $0.workerDidWait(worker, searches: searches) } }
    return sleep()
  }
}
