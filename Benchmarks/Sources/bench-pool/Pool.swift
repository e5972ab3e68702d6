import CBench
import Glibc

extension Row {
  /// The rows whose work the executor alone does. Queues, timers, the main actor and priorities are the library's.
  static let onPool = (tasks + actors + handovers)
    .filter { row in
      [
        "task-group-fan-out", "task-groups-of-thousand", "twenty-microsecond-tasks", "async-let",
        "async-let-tree", "detached-task", "task-yield", "contended-actor-2", "contended-actor-8",
        "contended-actor-64", "async-stream",
      ].contains(row.name)
    }
    .map { row in
      Row(row.name, count: row.count, row.question) { count in
        await withTaskExecutorPreference(Pool.shared) { await row.pass(count) }
      }
    }
}

extension Task where Failure == Never {
  /// Hides the function of the standard library from the rows: a detached task inherits no preference.
  static func detached(operation: sending @escaping @isolated(any) () async -> Success) -> Task {
    Task(executorPreference: Pool.shared, operation: operation)
  }
}

/// The plainest executor: as many threads as processors take jobs from one queue, first in, first out. A mutex guards the
/// queue, and threads wait for a condition.
final class Pool: TaskExecutor, @unchecked Sendable {
  static let shared = Pool(threads: Int(bench_core_count()))

  // SAFETY: both are initialized below and never freed: the pool lives as long as the process.
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let isNotEmpty = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
  // SAFETY: used with the mutex locked only. Jobs before `next` have been taken.
  private var jobs: [UnownedJob] = []
  private var next = 0

  private init(threads: Int) {
    verify(pthread_mutex_init(mutex, nil), equals: 0, "pthread_mutex_init")
    verify(pthread_cond_init(isNotEmpty, nil), equals: 0, "pthread_cond_init")
    for _ in 0..<threads {
      var thread = pthread_t()
      // SAFETY: each thread has a reference to the pool, and never ends.
      let status = pthread_create(
        &thread, nil,
        { pool in
          if let pool { Unmanaged<Pool>.fromOpaque(pool).takeUnretainedValue().work() }
          return nil
        }, Unmanaged.passRetained(self).toOpaque())
      verify(status, equals: 0, "pthread_create")
    }
  }

  func enqueue(_ job: consuming ExecutorJob) {
    pthread_mutex_lock(mutex)
    jobs.append(UnownedJob(job))
    pthread_mutex_unlock(mutex)
    pthread_cond_signal(isNotEmpty)
  }

  private func work() {
    while true { take().runSynchronously(on: asUnownedTaskExecutor()) }
  }

  private func take() -> UnownedJob {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    while next == jobs.count { pthread_cond_wait(isNotEmpty, mutex) }
    let job = jobs[next]
    next += 1
    // Taken jobs go in bulk, which moves each of the others once at most.
    if next == jobs.count || next >= 1024 && next * 2 >= jobs.count {
      jobs.removeFirst(next)
      next = 0
    }
    return job
  }
}
