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

  /// Spins for the signal.
  /// - Returns: whether it has come.
  func spin() -> Bool { Spin.wait(rounds: Spin.waitRounds, until: { isSet }) }

  /// Sleeps until the signal, unknown to the pool. Its workers sleep so while they are idle (else Pool/BlockedSection.swift).
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
