/// A one-shot event between exactly one waiter and one signaller.
///
/// The waiter may be gone the moment the signal is visible, so the signaller's single exchange is its
/// last touch of this memory (the futex call that may follow only uses the address as a key).
struct ThreadEvent: ~Copyable {
  private enum Word {
    static let unset: UInt32 = 0
    static let set: UInt32 = 1
    static let asleep: UInt32 = 2
  }

  private let word = Atomic<UInt32>(Word.unset)

  /// Makes the event unset again. Only its waiter calls this, while no signal can be on its way.
  func reset() {
    // ORDERING: relaxed; whoever will signal learns of this event later, through a releasing operation.
    word.store(Word.unset, ordering: .relaxed)
  }

  /// Whether the signal has arrived.
  var isSet: Bool {
    // ORDERING: acquiring; pairs with `signal`, so what the signaller did before is visible.
    word.load(ordering: .acquiring) == Word.set
  }

  /// Releases the waiter.
  func signal() {
    // ORDERING: acquiring and releasing; publishes everything before it to the waiter and, reading
    // `asleep`, is ordered after the waiter's announcement that it sleeps.
    if word.exchange(Word.set, ordering: .acquiringAndReleasing) == Word.asleep {
      Futex.wake(word, count: 1)
    }
  }

  /// Waits for the signal: spins first, then sleeps, telling the pool before it does.
  func wait() {
    if Spin.wait(rounds: Spin.waitRounds, until: { isSet }) { return }
    BlockedSection.run { _ = sleep(until: .never) }
  }

  /// Waits without telling the pool: for workers that are idle and for the engine's own threads.
  /// - Returns: false when `deadline` passed first. The event stays usable.
  func park(until deadline: Deadline) -> Bool {
    isSet || sleep(until: deadline)
  }

  private func sleep(until deadline: Deadline) -> Bool {
    while true {
      // ORDERING: acquiring on failure, pairs with `signal`; the announcement itself publishes nothing.
      let (announced, word) = self.word.compareExchange(
        expected: Word.unset, desired: Word.asleep, ordering: .acquiring)
      if !announced && word == Word.set { return true }
      if Futex.wait(self.word, expected: Word.asleep, deadline: deadline) == .timedOut {
        // ORDERING: acquiring on failure: the signal came after all.
        return !self.word.compareExchange(
          expected: Word.asleep, desired: Word.unset, ordering: .acquiring
        ).exchanged
      }
      if isSet { return true }
    }
  }
}
