internal import ConcourseEvents
internal import Synchronization

/// A closure that runs as an item of a queue while a task awaits it.
///
/// This object carries the closure to the queue and its result back, so the item needs no memory of its own.
final class Call<Result, Failure: Error> {
  private var work: (() throws(Failure) -> Result)?
  private var result: Swift.Result<Result, Failure>?
  private var continuation: CheckedContinuation<Void, Never>?
  private let isDone = Synchronization.Atomic<Bool>(false)

  init(_ work: @escaping () throws(Failure) -> Result) { self.work = work }

  /// Suspends the calling task until the closure has run. Call it once.
  /// - Parameter submit: Submits the item that it receives.
  nonisolated(nonsending) func perform(submit: (_ item: @escaping () -> Void) -> Void) async {
    await withCheckedContinuation { continuation in
      self.continuation = continuation
      submit { self.run() }
    }
  }

  /// Moves the result out of this object, which the item's thread may keep alive a little longer. Call it once, after
  /// `perform`.
  func takeOutcome() -> Swift.Result<Result, Failure> {
    // ORDERING: acquiring; pairs with the releasing store in `run` and publishes `result`. Swift's runtime orders the
    // two as well, but the thread sanitizer does not see that.
    guard isDone.load(ordering: .acquiring), let outcome = result else {
      preconditionFailure("a task resumed before the item that it awaits had run")
    }
    result = nil
    return outcome
  }

  private func run() {
    result = Swift.Result(catching: work!)
    // The closure's captures must be released before the caller resumes.
    work = nil
    // The task may release this object as soon as it resumes.
    let continuation = continuation!
    // ORDERING: releasing; see `takeOutcome`.
    isDone.store(true, ordering: .releasing)
    continuation.resume()
  }
}

// SAFETY: OWNED BY the task until it submits the item, then by the item until it resumes the task, then by the task
// again. The closure was sent to the queue with its captures and runs once, so nothing else refers to its result.
extension Call: @unchecked Sendable {}

extension DispatchQoS {
  /// The QoS of the calling task's current priority.
  init(ofCurrentTask: Void) {
    self.init(qosClass: QoSClass(Task.currentPriority.rawValue), relativePriority: 0)
  }
}
