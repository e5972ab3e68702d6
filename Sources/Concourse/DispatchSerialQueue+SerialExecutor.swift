public import ConcourseRuntime

/// A serial queue runs actors, and so does a workloop, which runs the jobs of the highest priority first.
///
///     actor Account {
///       private nonisolated let queue = DispatchSerialQueue(label: "account")
///       nonisolated var unownedExecutor: UnownedSerialExecutor { queue.asUnownedSerialExecutor() }
///     }
///
/// Each job of the actor is an item of the queue: it keeps its place among the others (on a workloop, among those of its
/// class), `dispatchPrecondition` finds it on the queue, and it is held while the queue is suspended or inactive. The actor
/// must keep the queue alive.
///
/// **Isolation** belongs to hierarchies: all queues below one serial queue exclude one another, so what holds
/// the topmost of them is isolated to the actors on all. `assumeIsolated` and `preconditionIsolated`
/// succeed in every item that excludes the actor's jobs, however it was submitted, and in what
/// such an item waits for with `sync`; elsewhere they trap. A target may still be set while the queue is
/// inactive, and counts from then on.
extension _DispatchSerialExecutorQueue: SerialExecutor {
  /// What `enqueue` is to actors on this queue. Hidden: Swift's runtime calls it.
  @_documentation(visibility: internal)
  @_implements(SerialExecutor,enqueue(_:)) @_disfavoredOverload
  public final func enqueueIsolated(_ job: consuming ExecutorJob) {
    submit(job) {
      // SAFETY: `running` is the queue that the job was submitted to, and that is of this class.
      let queue = unsafeDowncast(DispatchQueue.running, to: _DispatchSerialExecutorQueue.self)
      $0!.runSynchronously(on: queue.asUnownedSerialExecutor())
    }
  }

  /// This queue as an actor's executor. The reference is not counted.
  public final func asUnownedSerialExecutor() -> UnownedSerialExecutor {
    UnownedSerialExecutor(complexEquality: self)
  }

  /// Whether jobs of this queue and of `other` exclude one another: they are the same, one targets the other,
  /// or both lead to the same serial queue. O(depth of the hierarchies).
  public final func isSameExclusiveExecutionContext(other: _DispatchSerialExecutorQueue) -> Bool {
    exclusiveContext === other.exclusiveContext
  }

  /// Whether the calling code excludes this queue's jobs. O(depth of the hierarchy).
  /// - Returns: nil instead of false: Swift's runtime then asks `checkIsolated`, whose message names the
  ///   queue.
  public final func isIsolatingCurrentContext() -> Bool? { excludesCaller ? true : nil }

  /// Traps unless the calling code excludes this queue's jobs. O(depth of the hierarchy).
  public final func checkIsolated() {
    if !excludesCaller { rejectCaller() }
  }
}
