import ExampleSupport
import Glibc
import Synchronization

/// The whole job: walk, then compare, then report. The end of a stage starts the next one by a notification; no
/// thread waits for a stage.
// SAFETY: all members are constant. `comparison` is submitted once, and a work item may be cancelled on any thread.
final class Search: @unchecked Sendable {
  let job: Job
  private let walk: Walk
  private let comparison: DispatchWorkItem

  init(_ options: Options) {
    let job = Job(options)
    self.job = job
    walk = Walk(job)
    comparison = DispatchWorkItem { Comparison(job).run() }
  }

  /// Starts the search and returns at once. `completion` runs on `queue` when the search is complete or cancelled.
  func start(completionQueue queue: DispatchQueue, completion: @escaping @Sendable (Outcome) -> Void) {
    startWalk(thenOn: queue) { self.startComparison(completionQueue: queue, completion: completion) }
  }

  /// The first stage alone, for tests that change the tree between the stages.
  func startWalk(thenOn queue: DispatchQueue, _ next: @escaping @Sendable () -> Void) {
    walk.start()
    walk.finished.notify(queue: queue, execute: next)
  }

  /// The second stage. A cancelled work item never runs, but its notification comes all the same, and so does the
  /// completion.
  func startComparison(
    completionQueue: DispatchQueue, completion: @escaping @Sendable (Outcome) -> Void
  ) {
    comparison.notify(queue: completionQueue) { completion(Outcome(self.job)) }
    DispatchQueue.global(qos: .userInitiated).async(execute: comparison)
  }

  /// Ends the search early.
  ///
  /// - Parameter signal: the reason.
  /// - Returns: false if it was cancelled before.
  func cancel(_ signal: Int32) -> Bool {
    guard job.cancel(signal) else { return false }
    comparison.cancel()
    return true
  }
}

/// What the stages share.
final class Job: Sendable {
  let options: Options
  let index = Index()
  let findings = Findings()
  let counters = Counters()
  let budget: DescriptorBudget
  private let signal = Atomic<Int32>(0)

  init(_ options: Options) {
    self.options = options
    budget = DescriptorBudget(jobs: options.jobs)
  }

  /// The signal that cancelled the job, or nil.
  var cancellation: Int32? {
    // ORDERING: relaxed; pairs with the exchange below. The number publishes nothing else.
    let signal = signal.load(ordering: .relaxed)
    return signal == 0 ? nil : signal
  }

  /// Loops look at this between two files: a running closure cannot be stopped from outside.
  var isCancelled: Bool { cancellation != nil }

  fileprivate func cancel(_ signal: Int32) -> Bool {
    // ORDERING: relaxed; pairs with the load above. Loops need to see it eventually, and it publishes nothing else.
    self.signal.compareExchange(expected: 0, desired: signal, ordering: .relaxed).exchanged
  }
}

/// Bounds how many files are open at once, so that `dupes` waits where `ulimit -n` is small and does not fail with
/// "Too many open files".
///
/// A permit is the right to have one descriptor open. Its holder makes system calls only and never waits for a second
/// permit: two holders that did so could wait for each other forever.
struct DescriptorBudget {
  let permits: Int
  private let semaphore: DispatchSemaphore

  /// - Parameter jobs: the user's bound; nil leaves it to the system's.
  init(jobs: Int?) {
    var limit = rlimit()
    let isKnown = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0
    let soft = isKnown ? Int(clamping: limit.rlim_cur) : 256
    let reserve = 16  // standard input, output and error, and the descriptors of the runtime
    let enough = 1024  // far more than the threads that read at once
    permits = min(max(1, soft - reserve), jobs ?? .max, enough)
    semaphore = DispatchSemaphore(value: permits)
  }

  func acquire() { semaphore.wait() }
  func release() { semaphore.signal() }

  func withPermit<Result>(_ body: () -> Result) -> Result {
    acquire()
    defer { release() }
    return body()
  }
}
