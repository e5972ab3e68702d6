public import ConcourseEvents

/// Serial queues and workloops run actors. A workloop runs the jobs of the highest priority first.
///
///     actor Account {
///       private nonisolated let queue = DispatchSerialQueue(label: "account")
///       nonisolated var unownedExecutor: UnownedSerialExecutor { queue.asUnownedSerialExecutor() }
///     }
///
/// Each job of the actor is an item of the queue. It keeps its place among the other items (on a workloop, among those
/// of its class), satisfies `dispatchPrecondition` for the queue, and waits while the queue is suspended or inactive.
/// The actor must keep the queue alive.
///
/// **Isolation** follows the queue hierarchy. All queues below one serial queue exclude one another, so code that holds
/// the topmost queue is isolated to the actors on all of them. `assumeIsolated` and `preconditionIsolated` succeed in
/// every item that excludes the actor's jobs, however it was submitted, and in code that such an item runs with `sync`;
/// elsewhere they trap. If an inactive queue gets another target, its isolation follows the new target from then on.
extension _DispatchSerialExecutorQueue: SerialExecutor {
  /// `enqueue` for actors on this queue. Called by Swift's runtime.
  @_documentation(visibility: internal)
  @_implements(SerialExecutor,enqueue(_:)) @_disfavoredOverload
  public final func enqueueIsolated(_ job: consuming ExecutorJob) {
    submit(job, runIsolatedJob)
  }

  /// This queue as an actor's executor. The reference is not retained.
  public final func asUnownedSerialExecutor() -> UnownedSerialExecutor {
    UnownedSerialExecutor(complexEquality: self)
  }

  /// Whether jobs of this queue and of `other` exclude one another: the queues are the same, one targets the other, or
  /// both lead to the same serial queue. O(depth of the hierarchies).
  public final func isSameExclusiveExecutionContext(other: _DispatchSerialExecutorQueue) -> Bool {
    exclusiveContext === other.exclusiveContext
  }

  /// Whether the calling code excludes this queue's jobs. O(depth of the hierarchy).
  /// - Returns: `true` or nil. After nil, Swift's runtime calls `checkIsolated`, whose message names the queue.
  public final func isIsolatingCurrentContext() -> Bool? { excludesCaller ? true : nil }

  /// Traps unless the calling code excludes this queue's jobs. O(depth of the hierarchy).
  public final func checkIsolated() {
    if !excludesCaller { rejectCaller() }
  }
}

/// As `runPreferredJob`, for a job that is isolated to the queue.
@c(concourse_run_isolated_job)
func runIsolatedJob(_ job: UnsafeMutableRawPointer?) {
  // SAFETY: `running` is the queue that the job was submitted to, which is of this class.
  let queue = unsafeDowncast(DispatchQueue.running, to: _DispatchSerialExecutorQueue.self)
  job!.runSynchronously(on: queue.asUnownedSerialExecutor())
}
