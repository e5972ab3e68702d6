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

/// The function of an item that runs a job. Recordings know jobs by it, so it has a name of C.
@c(concourse_run_preferred_job)
func runPreferredJob(_ job: UnsafeMutableRawPointer?) {
  job!.runSynchronously(on: DispatchQueue.running.asUnownedTaskExecutor())
}

extension DispatchQueue {
  /// Runs a job on the queue that it was submitted to, which is `running` at that time.
  typealias JobRunner = @convention(c) (UnsafeMutableRawPointer?) -> Void

  /// Submits a job as an item.
  ///
  /// The item carries only the job, one word; the runner finds the queue in `running`.
  final func submit(_ job: consuming ExecutorJob, _ run: JobRunner) {
    let job = UnownedJob(job)
    asyncJob(qos: DispatchQoS.QoSClass(job.priority.rawValue), context: job.context, function: run)
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
