/// Sleeping and waking on a 32-bit word, in the model: the comparison and the sleep are one step.
@usableFromInline
enum Futex {
  /// Why a wait returned.
  enum Outcome {
    case lookAgain
    case timedOut
  }

  /// Sleeps while `word` equals `expected`, until `deadline` at the latest.
  static func wait(
    _ word: borrowing Atomic<UInt32>, expected: UInt32, deadline: Deadline = .never,
    file: StaticString = #fileID, line: UInt = #line, function: StaticString = #function
  ) -> Outcome {
    guard let access = word.access(file, line, function), let scheduler = Scheduler.current else {
      preconditionFailure("no thread can end a sleep outside an execution")
    }
    if deadline == .immediate { return .timedOut }
    let sleeps = access.compareInKernel(WordBits(expected))
    // The outcome depends on the wake-ups before, and falling asleep on its turn among them.
    let none = WordBits(low: 0, high: 0)
    scheduler.order(
      Step(sleeps ? .wait : .failedWait, at: word.address, was: none, is: none, file: file, line: line))
    scheduler.partialOrder?.touch(word.key, .sleepers, isWrite: sleeps)
    guard sleeps else { return .lookAgain }
    return scheduler.sleep(on: word.address, until: deadline.elapsedTime, isFutex: true)
  }

  /// Wakes up to `count` coroutines that sleep on `word`. If more sleep, the search chooses.
  @usableFromInline
  static func wake(
    _ word: borrowing Atomic<UInt32>, count: Int32, file: StaticString = #fileID, line: UInt = #line,
    function: StaticString = #function
  ) {
    // The word may be freed once another coroutine has run.
    let (key, address) = (word.key, word.address)
    guard let scheduler = Scheduler.arrive() else { return }
    let none = WordBits(low: 0, high: 0)
    scheduler.note(Step(.wake, at: address, was: none, is: none, file: file, line: line))
    scheduler.partialOrder?.touch(key, .sleepers, isWrite: true)
    if Mutation.isRecording { Mutation.record("wake", file, line, nil) }
    if Mutation.meets(.wake, "wake", file, line) || ModelFaults.plants(.noWake, file, function) { return }
    #if LEDGER
      Ledger.wake()
    #endif
    scheduler.wake(on: address, count: Int(count))
  }
}
