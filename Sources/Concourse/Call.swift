internal import ConcourseRuntime
internal import Synchronization

/// A closure that runs as an item of a queue while a task awaits it.
///
/// One object carries it there and its outcome back, so that the item needs no memory of its own.
final class Call<Result, Failure: Error> {
  private var work: (() throws(Failure) -> Result)?
  private var result: Swift.Result<Result, Failure>?
  private var continuation: CheckedContinuation<Void, Never>?
  private let isDone = Synchronization.Atomic<Bool>(false)

  init(_ work: @escaping () throws(Failure) -> Result) { self.work = work }

  /// Suspends the calling task until the closure has run. Once for each call.
  /// - Parameter submit: submits the item that is passed to it.
  nonisolated(nonsending) func perform(submit: (_ item: @escaping () -> Void) -> Void) async {
    await withCheckedContinuation { continuation in
      self.continuation = continuation
      submit { self.run() }
    }
  }

  /// What came of it, for who has awaited `perform`, and for nobody else: the call may outlive its item's end
  /// on another thread.
  func takeOutcome() -> Swift.Result<Result, Failure> {
    // ORDERING: acquiring; pairs with the releasing store in `run`. Swift's runtime orders the two as well,
    // but out of the thread sanitizer's sight.
    guard isDone.load(ordering: .acquiring), let outcome = result else {
      preconditionFailure("a task went on before the item that it awaits had run")
    }
    result = nil
    return outcome
  }

  private func run() {
    result = Swift.Result(catching: work!)
    // First: what the closure holds must be gone when its caller goes on.
    work = nil
    // The task may drop the call as soon as it goes on.
    let continuation = continuation!
    // ORDERING: releasing; see `takeOutcome`.
    isDone.store(true, ordering: .releasing)
    continuation.resume()
  }
}

// SAFETY: OWNED BY the task until it has submitted the item, by the item until it resumes the task, and by
// the task again from then on. The closure was sent to the queue with all that it captured and runs once, so
// what it returns is nobody else's.
extension Call: @unchecked Sendable {}

extension DispatchQoS {
  /// The class of the priority that the calling task has now.
  init(ofCurrentTask: Void) {
    self.init(qosClass: QoSClass(Task.currentPriority.rawValue), relativePriority: 0)
  }
}
