/// The state of a work item, in one 32-bit word.
///
/// | bits | field      | meaning |
/// |------|------------|---------|
/// | 0    | cancelled  | executions that have not begun skip the closure |
/// | 1    | complete   | the first execution has ended |
/// | 2    | waitedFor  | a wait has succeeded |
/// | 3    | interested | a waiter sleeps or a notification is registered |
/// | 8–31 | executions | begun so far, directly or from a queue |
struct WorkItemState: ~Copyable {
  private let word = Atomic<UInt32>(0)

  struct Snapshot {
    fileprivate let bits: UInt32
    fileprivate static let cancelled: UInt32 = 1
    fileprivate static let complete: UInt32 = 2
    fileprivate static let waitedFor: UInt32 = 4
    fileprivate static let interested: UInt32 = 8
    fileprivate static let execution: UInt32 = 1 << 8

    var isCancelled: Bool { bits & Self.cancelled != 0 }
    var isComplete: Bool { bits & Self.complete != 0 }
    var hasBeenWaitedFor: Bool { bits & Self.waitedFor != 0 }
    var executions: UInt32 { bits >> 8 }
    /// Whether no execution had begun.
    var isFirst: Bool { executions == 0 }
  }

  func cancel() {
    // ORDERING: releasing; a thread that sees the cancellation sees what came before it.
    word.bitwiseOr(Snapshot.cancelled, ordering: .releasing)
  }

  var isCancelled: Bool {
    // ORDERING: acquiring; pairs with `cancel`.
    Snapshot(bits: word.load(ordering: .acquiring)).isCancelled
  }

  /// Counts an execution.
  /// - Returns: the state before it.
  func begin() -> Snapshot {
    // ORDERING: acquiring; pairs with `cancel`.
    Snapshot(bits: word.wrappingAdd(Snapshot.execution, ordering: .acquiring).oldValue)
  }

  enum Completion { case notify, nothing }

  /// Ends the first execution.
  /// - Returns: whether waiters or notifications must be notified.
  func complete() -> Completion {
    // ORDERING: acquiring and releasing; publishes what the item did to waiters and notifications.
    let before = word.bitwiseOr(Snapshot.complete, ordering: .acquiringAndReleasing).oldValue
    return before & Snapshot.interested != 0 ? .notify : .nothing
  }

  func wakeWaiters() { Futex.wake(word, count: .max) }

  func beginWait() -> Snapshot {
    // ORDERING: acquiring; pairs with `complete`.
    Snapshot(bits: word.load(ordering: .acquiring))
  }

  /// - Returns: false when the deadline passed first.
  func sleepUntilComplete(_ deadline: Deadline, beforeSleep: () -> Void = {}) -> Bool {
    // ORDERING: acquiring; pairs with `complete`.
    if Snapshot(bits: word.load(ordering: .acquiring)).isComplete { return true }
    if case .immediate = deadline { return false }
    beforeSleep()
    var inTime = true
    BlockedSection.run {
      while true {
        let seen = registerInterest()
        if seen.isComplete { return }
        if Futex.waitForOthers(word, expected: seen.bits | Snapshot.interested, deadline: deadline)
          == .timedOut
        {
          // ORDERING: acquiring; as above.
          inTime = Snapshot(bits: word.load(ordering: .acquiring)).isComplete
          return
        }
      }
    }
    return inTime
  }

  /// Records that a wait has succeeded.
  /// - Returns: false if an earlier wait had succeeded.
  func endWait() -> Bool {
    // ORDERING: relaxed; it only decides which of two waits traps.
    word.bitwiseOr(Snapshot.waitedFor, ordering: .relaxed).oldValue & Snapshot.waitedFor == 0
  }

  /// Makes the completion notify.
  /// - Returns: the state before.
  func registerInterest() -> Snapshot {
    // ORDERING: acquiring and releasing; the completion sees the bit, or the caller sees the completion.
    Snapshot(bits: word.bitwiseOr(Snapshot.interested, ordering: .acquiringAndReleasing).oldValue)
  }
}
