public import ConcourseEvents

// Every queue is a task executor; serial queues are serial executors too. Swift calls `enqueue` in either role, and the
// job must then run in that same role: a job in the wrong role makes one extra executor switch at each of its calls. So
// each role has its own witness.

/// Every queue runs the tasks that prefer it: `Task(executorPreference:)`, `withTaskExecutorPreference`.
///
/// Each job of such a task is an ordinary item of the queue. It keeps its place among the other items, waits while the
/// queue is suspended or inactive, and runs at the queue's QoS or, if the queue has none, at that of the task's
/// priority. Code that is isolated to an actor with its own executor runs there instead. The task keeps its preferred
/// queue alive until it ends.
extension DispatchQueue: TaskExecutor {
  /// Submits a job and returns at once. Called by Swift's runtime.
  ///
  /// A job that another executor submits directly to a `DispatchSerialQueue` or `DispatchWorkloop` runs isolated to
  /// that queue.
  public final func enqueue(_ job: consuming ExecutorJob) {
    if let queue = self as? _DispatchSerialExecutorQueue {
      queue.enqueueIsolated(job)
    } else {
      enqueuePreferred(job)
    }
  }

  /// This queue as a task executor. The reference is not retained.
  public final func asUnownedTaskExecutor() -> UnownedTaskExecutor { UnownedTaskExecutor(ordinary: self) }

  /// `enqueue` for tasks that prefer this queue. Called by Swift's runtime.
  @_documentation(visibility: internal)
  @_implements(TaskExecutor,enqueue(_:)) @_disfavoredOverload
  public final func enqueuePreferred(_ job: consuming ExecutorJob) {
    submit(job, runPreferredJob)
  }
}

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

// MARK: - Jobs as items

extension DispatchQueue {
  /// Runs a job on the queue that it was submitted to, which is `running` at that time.
  typealias JobRunner = @convention(c) (UnsafeMutableRawPointer?) -> Void

  /// Submits a job as an item.
  ///
  /// The item carries only the job, one word; the runner finds the queue in `running`.
  final func submit(_ job: consuming ExecutorJob, _ run: JobRunner) {
    let job = UnownedJob(job)
    asyncFunction(qos: DispatchQoS.QoSClass(job.priority.rawValue), flags: [], job.context, run)
  }
}

extension UnownedJob {
  // SAFETY: a frozen struct with one reference, which Swift's runtime consumes when the job runs.
  fileprivate var context: UnsafeMutableRawPointer { unsafeBitCast(self, to: UnsafeMutableRawPointer.self) }
}

extension UnsafeMutableRawPointer {
  // SAFETY: only `submit` makes these pointers, from jobs.
  private var job: UnownedJob { unsafeBitCast(self, to: UnownedJob.self) }

  func runSynchronously(on executor: UnownedTaskExecutor) { job.runSynchronously(on: executor) }
  func runSynchronously(on executor: UnownedSerialExecutor) { job.runSynchronously(on: executor) }
}

/// The function of an item that runs a job. Recordings know jobs by it, so it has a name of C.
@c(concourse_run_preferred_job)
func runPreferredJob(_ job: UnsafeMutableRawPointer?) {
  job!.runSynchronously(on: DispatchQueue.running.asUnownedTaskExecutor())
}

/// As `runPreferredJob`, for a job that is isolated to the queue.
@c(concourse_run_isolated_job)
func runIsolatedJob(_ job: UnsafeMutableRawPointer?) {
  // SAFETY: `running` is the queue that the job was submitted to, which is of this class.
  let queue = unsafeDowncast(DispatchQueue.running, to: _DispatchSerialExecutorQueue.self)
  job!.runSynchronously(on: queue.asUnownedSerialExecutor())
}

extension DispatchQoS.QoSClass {
  /// The class for a priority. Class values are points on the scale of priorities; a priority between two of them maps
  /// to the lower class.
  init(_ priority: UInt8) {
    switch priority {
    case 0x21...: self = .userInteractive
    case TaskPriority.high.rawValue...: self = .userInitiated
    case TaskPriority.medium.rawValue...: self = .default
    case TaskPriority.low.rawValue...: self = .utility
    case 1...: self = .background
    default: self = .unspecified
    }
  }
}
