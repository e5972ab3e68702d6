/// The whole job: walk, then compare, then tell. The stages follow each other through group and work-item
/// notifications; no thread waits for a stage to end.
// SAFETY: all members are immutable. `comparison` is the one that is not Sendable by itself: it is
// submitted once, and cancelling it, which any thread may do, is what a work item allows at any time.
package final class Search: @unchecked Sendable {
  let index = Index()
  let counters = Counters()
  private let findings = Findings()
  private let cancellation: Cancellation
  private let walk: Walk
  private let comparison: DispatchWorkItem

  package init(_ options: Options, cancellation: Cancellation) {
    let (index, counters, findings) = (index, counters, findings)
    let budget = DescriptorBudget(jobs: options.jobs)
    self.cancellation = cancellation
    walk = Walk(
      roots: options.roots.map(Search.rootPath), options.selection, into: index, findings,
      budget: budget, cancellation: cancellation)
    comparison = DispatchWorkItem {
      Comparison(
        index.contents, followsSymbolicLinks: options.follow, into: findings, counters,
        budget: budget, cancellation: cancellation
      ).run()
    }
  }

  /// Starts the search and returns at once; `completion` runs on `queue` when it is done or cancelled.
  package func start(completionQueue queue: DispatchQueue, completion: @escaping @Sendable (Outcome) -> Void)
  {
    startWalk(thenOn: queue) { self.startComparison(completionQueue: queue, completion: completion) }
  }

  /// The first stage alone, for tests that change the tree between the stages.
  package func startWalk(thenOn queue: DispatchQueue, _ next: @escaping @Sendable () -> Void) {
    walk.start()
    walk.finished.notify(queue: queue, execute: next)
  }

  /// The second stage. A cancelled work item counts as finished as soon as its turn comes, though it never
  /// ran, so the completion is called in any case.
  package func startComparison(
    completionQueue: DispatchQueue, completion: @escaping @Sendable (Outcome) -> Void
  ) {
    cancellation.register(comparison)
    comparison.notify(queue: completionQueue) {
      completion(
        Outcome(self.index.contents, self.findings.contents, isComplete: !self.cancellation.isCancelled))
    }
    DispatchQueue.global(qos: .userInitiated).async(execute: comparison)
  }

  /// The root as the paths below it begin: with a `/` at its end. A name that begins with a tab gets `./`
  /// in front, because a tab at the start of a line of the report means something else.
  private static func rootPath(_ root: Bytes) -> Bytes {
    var path = root
    if path.first == UInt8(ascii: "\t") { path.insert(contentsOf: Bytes("./".utf8), at: 0) }
    if path.last != UInt8(ascii: "/") { path.append(UInt8(ascii: "/")) }
    return path
  }
}
