public import ConcourseRuntime

// One class is a task executor and, in its serial subclasses, a serial executor too. Swift calls
// `enqueue` in either role and expects to be told, when the job runs, in which of them it was called: a job
// that runs in the wrong role changes executors once more than it needs to at each of its calls. So each
// role has a witness of its own.

/// Every queue runs tasks that prefer it: `Task(executorPreference:)`, `withTaskExecutorPreference`.
///
/// Each job of such a task is an ordinary item of the queue: it keeps its place among the others, is held
/// while the queue is suspended or inactive, and is served at the queue's QoS or, if it has none, at that of
/// the task's priority. Code of the task that is isolated to an actor with an executor of its own runs there.
/// A queue that is preferred stays alive until the task has ended.
extension DispatchQueue: TaskExecutor {
  /// Submits a job and returns at once; Swift's runtime calls this.
  ///
  /// A job that is submitted directly to a `DispatchSerialQueue` or `DispatchWorkloop`, by an executor that
  /// is built upon it, runs isolated to that queue.
  public final func enqueue(_ job: consuming ExecutorJob) {
    if let queue = self as? _DispatchSerialExecutorQueue {
      queue.enqueueIsolated(job)
    } else {
      enqueuePreferred(job)
    }
  }

  /// This queue as a task executor. The reference is not counted.
  public final func asUnownedTaskExecutor() -> UnownedTaskExecutor { UnownedTaskExecutor(ordinary: self) }

  /// What `enqueue` is to tasks that prefer this queue. Hidden: Swift's runtime calls it.
  @_documentation(visibility: internal)
  @_implements(TaskExecutor,enqueue(_:)) @_disfavoredOverload
  public final func enqueuePreferred(_ job: consuming ExecutorJob) {
    submit(job) { $0!.runSynchronously(on: DispatchQueue.running.asUnownedTaskExecutor()) }
  }
}

extension DispatchQueue {
  /// How a job is run by the queue that it was submitted to, which is the `running` one then.
  typealias JobRunner = @convention(c) (UnsafeMutableRawPointer?) -> Void

  /// The one place where jobs become items.
  ///
  /// A job is one word, and so is what its item carries: the queue is known where it runs.
  final func submit(_ job: consuming ExecutorJob, _ run: JobRunner) {
    let job = UnownedJob(job)
    asyncJob(qos: DispatchQoS.QoSClass(job.priority.rawValue), context: job.context, function: run)
  }
}

extension UnownedJob {
  // SAFETY: a frozen struct around one reference, which Swift's runtime consumes when the job runs.
  fileprivate var context: UnsafeMutableRawPointer { unsafeBitCast(self, to: UnsafeMutableRawPointer.self) }
}

extension UnsafeMutableRawPointer {
  // SAFETY: only `submit` makes these pointers, from jobs; see above.
  private var job: UnownedJob { unsafeBitCast(self, to: UnownedJob.self) }

  func runSynchronously(on executor: UnownedTaskExecutor) { job.runSynchronously(on: executor) }
  func runSynchronously(on executor: UnownedSerialExecutor) { job.runSynchronously(on: executor) }
}

extension DispatchQoS.QoSClass {
  /// The class that serves a job or task of this priority. Priorities are numbers with the classes as points
  /// among them: what lies between two points belongs to the lower class.
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
