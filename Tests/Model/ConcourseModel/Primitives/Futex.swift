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
    file: StaticString = #fileID, line: UInt = #line
  ) -> Outcome {
    guard let access = word.access(file, line), let scheduler = Scheduler.current else {
      preconditionFailure("no thread can end a sleep outside an execution")
    }
    if deadline == .immediate { return .timedOut }
    let sleeps = access.compareInKernel(WordBits(expected))
    // The outcome depends on the wake-ups before, and falling asleep on its turn among them.
    let none = WordBits(low: 0, high: 0)
    scheduler.order(
      Step(sleeps ? .wait : .failedWait, at: word.address, was: none, is: none, file: file, line: line))
    return sleeps ? scheduler.sleep(on: word.address, until: deadline.elapsedTime) : .lookAgain
  }

  /// Wakes up to `count` coroutines that sleep on `word`, in the order in which they fell asleep.
  @usableFromInline
  static func wake(
    _ word: borrowing Atomic<UInt32>, count: Int32, file: StaticString = #fileID, line: UInt = #line
  ) {
    guard let scheduler = Scheduler.arrive() else { return }
    // The word may be freed already, so only its address is used.
    let none = WordBits(low: 0, high: 0)
    scheduler.note(Step(.wake, at: word.address, was: none, is: none, file: file, line: line))
    if Mutation.isRecording { Mutation.record("wake", file, line, nil) }
    if Mutation.meets(.wake, "wake", file, line) { return }
    scheduler.wake(on: word.address, count: Int(count))
  }
}
