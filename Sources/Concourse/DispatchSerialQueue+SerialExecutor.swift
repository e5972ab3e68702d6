public import ConcourseRuntime

/// A serial queue runs actors.
///
///     actor Account {
///       private nonisolated let queue = DispatchSerialQueue(label: "account")
///       nonisolated var unownedExecutor: UnownedSerialExecutor { queue.asUnownedSerialExecutor() }
///     }
///
/// Each job of the actor is an item of the queue: it keeps its place among the others, `dispatchPrecondition`
/// finds it on the queue, and it is held while the queue is suspended or inactive. The actor must keep the
/// queue alive.
///
/// **Isolation** belongs to hierarchies: all queues below one serial queue exclude one another, so what holds
/// the topmost of them is isolated to the actors on all. `assumeIsolated` and `preconditionIsolated`
/// succeed in every item that excludes the actor's jobs, however it was submitted, and in what
/// such an item waits for with `sync`; elsewhere they trap. A target may still be set while the queue is
/// inactive, and counts from then on.
extension DispatchSerialQueue: SerialExecutor {
  /// What `enqueue` is to actors on this queue. Hidden: Swift's runtime calls it.
  @_documentation(visibility: internal)
  @_implements(SerialExecutor,enqueue(_:)) @_disfavoredOverload
  public func enqueueIsolated(_ job: consuming ExecutorJob) {
    submit(job) {
      // SAFETY: `running` is the queue that the job was submitted to, and that is of this class.
      let queue = unsafeDowncast(DispatchQueue.running, to: DispatchSerialQueue.self)
      $0!.runSynchronously(on: queue.asUnownedSerialExecutor())
    }
  }

  /// This queue as an actor's executor. The reference is not counted.
  public func asUnownedSerialExecutor() -> UnownedSerialExecutor {
    UnownedSerialExecutor(complexEquality: self)
  }

  /// Whether jobs of this queue and of `other` exclude one another: they are the same, one targets the other,
  /// or both lead to the same serial queue. O(depth of the hierarchies).
  public func isSameExclusiveExecutionContext(other: DispatchSerialQueue) -> Bool {
    exclusiveContext === other.exclusiveContext
  }

  /// Whether the calling code excludes this queue's jobs. O(depth of the hierarchy).
  /// - Returns: nil instead of false: Swift's runtime then asks `checkIsolated`, whose message names the
  ///   queue.
  public func isIsolatingCurrentContext() -> Bool? { excludesCaller ? true : nil }

  /// Traps unless the calling code excludes this queue's jobs. O(depth of the hierarchy).
  public func checkIsolated() {
    if !excludesCaller { rejectCaller() }
  }
}

/// A workloop runs actors as a serial queue does, but the jobs of the highest priority first.
extension DispatchWorkloop: SerialExecutor {
  /// What `enqueue` is to actors on this workloop. Hidden: Swift's runtime calls it.
  @_documentation(visibility: internal)
  @_implements(SerialExecutor,enqueue(_:)) @_disfavoredOverload
  public func enqueueIsolated(_ job: consuming ExecutorJob) {
    submit(job) {
      // SAFETY: as for serial queues.
      let workloop = unsafeDowncast(DispatchQueue.running, to: DispatchWorkloop.self)
      $0!.runSynchronously(on: workloop.asUnownedSerialExecutor())
    }
  }

  /// This workloop as an actor's executor. The reference is not counted.
  public func asUnownedSerialExecutor() -> UnownedSerialExecutor {
    UnownedSerialExecutor(complexEquality: self)
  }

  /// As for serial queues.
  public func isSameExclusiveExecutionContext(other: DispatchWorkloop) -> Bool {
    exclusiveContext === other.exclusiveContext
  }

  /// As for serial queues.
  public func isIsolatingCurrentContext() -> Bool? { excludesCaller ? true : nil }

  /// As for serial queues.
  public func checkIsolated() {
    if !excludesCaller { rejectCaller() }
  }
}
