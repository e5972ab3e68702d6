import Dispatch

extension Row {
  static let tasks = [
    taskGroupFanOut,
    groupsOfThousand,
    twentyMicrosecondTasks,
    asyncLet,
    asyncLetTree,
    detachedTask,
    escalatedTask,
    taskYield,
    taskSleepStorm,
    cancelledTasks,
    executorOnQueue,
    continuationFromQueue,
  ]

  private static let taskGroupFanOut = Row(
    "task-group-fan-out", count: 1_000_000,
    "a million child tasks of one group, until all results are in"
  ) { count in
    let sum = await withTaskGroup(of: Int.self) { group in
      for index in 0..<count { group.addTask { index } }
      return await group.reduce(0, +)
    }
    verify(sum, equals: sumOfIndices(below: count), "the sum of the results")
  }

  private static let groupsOfThousand = Row(
    "task-groups-of-thousand", count: 200_000,
    "groups of 1,000 child tasks, one group after the other: time for a task"
  ) { count in
    let (groups, size) = (max(count / 1000, 1), 1000)
    var sum = 0
    for _ in 0..<groups {
      sum += await withTaskGroup(of: Int.self) { group in
        for index in 0..<size { group.addTask { index } }
        return await group.reduce(0, +)
      }
    }
    verify(sum, equals: groups * sumOfIndices(below: size), "the sum of the results")
  }

  /// Each begins to sleep, if it has not been cancelled before, and wakes up with an error.
  private static let cancelledTasks = Row(
    "cancelled-tasks", count: 10_000,
    "10,000 child tasks that sleep for an hour are cancelled with their group, until all have ended: time for a task"
  ) { count in
    let cancelled = await withTaskGroup(of: Bool.self) { group in
      for _ in 0..<count {
        group.addTask {
          do {
            try await Task.sleep(nanoseconds: 3600 * 1_000_000_000)
            return false
          } catch {
            return true
          }
        }
      }
      group.cancelAll()
      return await group.reduce(into: 0) { cancelled, isCancelled in cancelled += isCancelled ? 1 : 0 }
    }
    verify(cancelled, equals: count, "cancelled tasks")
  }

  private static let executorOnQueue = Row(
    "task-executor-on-queue", count: 200_000,
    "child tasks that prefer a program's own executor, which submits their jobs to a concurrent queue"
  ) { count in
    let executor = QueueTaskExecutor()
    let sum = await withTaskGroup(of: Int.self) { group in
      for index in 0..<count { group.addTask(executorPreference: executor) { index } }
      return await group.reduce(0, +)
    }
    verify(sum, equals: sumOfIndices(below: count), "the sum of the results")
  }

  /// Each group begins on one worker. The time beyond 20 µs, divided by the processors, is that of the spreading.
  private static let twentyMicrosecondTasks = Row(
    "twenty-microsecond-tasks", count: 16_000,
    "groups of 16 child tasks that compute for 20 µs, one group after the other: time for a task"
  ) { count in
    var done = 0
    for _ in 0..<max(count / 16, 1) {
      done += await withTaskGroup(of: Int.self) { group in
        for _ in 0..<16 {
          group.addTask {
            let end = now() + 20_000
            while now() < end {}
            return 1
          }
        }
        return await group.reduce(0, +)
      }
    }
    verify(done, equals: max(count / 16, 1) * 16, "tasks")
  }

  private static let asyncLet = Row(
    "async-let", count: 200_000,
    "two async lets, then both results: time for one of the two"
  ) { count in
    var sum = 0
    for index in 0..<(count / 2) {
      async let even = echo(2 * index)
      async let odd = echo(2 * index + 1)
      sum += await even + odd
    }
    verify(sum, equals: sumOfIndices(below: count / 2 * 2), "the sum of both")
  }

  private static let asyncLetTree = Row(
    "async-let-tree", count: 204_700,
    "trees of 2,047 functions, each of which but the leaves calls two others by async let: time for a function"
  ) { count in
    let trees = max(count / 2047, 1)
    var functions = 0
    for _ in 0..<trees { functions += await tree(depth: 10) }
    verify(functions, equals: trees * 2047, "functions")
  }

  private static let detachedTask = Row(
    "detached-task", count: 200_000,
    "start a detached task, wait for its value"
  ) { count in
    var sum = 0
    for index in 0..<count { sum += await Task.detached { index }.value }
    verify(sum, equals: sumOfIndices(below: count), "the sum of the results")
  }

  private static let escalatedTask = Row(
    "escalated-task", count: 50_000,
    "a task of high priority awaits the value of one of background priority, which is thereby raised"
  ) { count in
    let sum = await Task.detached(priority: .high) {
      var sum = 0
      for index in 0..<count { sum += await Task.detached(priority: .background) { index }.value }
      return sum
    }.value
    verify(sum, equals: sumOfIndices(below: count), "the sum of the results")
  }

  private static let taskYield = Row(
    "task-yield", count: 400_000,
    "four tasks yield to one another: time for a yield"
  ) { count in
    let yields = await withTaskGroup(of: Int.self) { group in
      for _ in 0..<4 {
        group.addTask {
          var yields = 0
          for _ in 0..<(count / 4) {
            await Task.yield()
            yields += 1
          }
          return yields
        }
      }
      return await group.reduce(0, +)
    }
    verify(yields, equals: count / 4 * 4, "yields")
  }

  private static let taskSleepStorm = Row(
    "task-sleep-storm", count: 100_000,
    "100,000 tasks sleep 1 ms each at the same time, until all are awake"
  ) { count in
    let start = now()
    let early = await withTaskGroup(of: Bool.self) { group in
      for _ in 0..<count {
        group.addTask {
          let asleep = now()
          do {
            try await Task.sleep(nanoseconds: 1_000_000)
          } catch {
            fail("a sleep ended with \(error)")
          }
          return now() - asleep < 1_000_000
        }
      }
      return await group.reduce(into: 0) { early, isEarly in early += isEarly ? 1 : 0 }
    }
    verify(early, equals: 0, "tasks that woke early")
    verify(now() - start >= 1_000_000, equals: true, "the last task did not wake early")
  }

  private static let continuationFromQueue = Row(
    "continuation-from-queue", count: 50_000,
    "a task waits for a callback that a serial queue runs"
  ) { count in
    let queue = DispatchQueue(label: "callbacks")
    var sum = 0
    for index in 0..<count {
      sum += await withCheckedContinuation { continuation in
        queue.async { continuation.resume(returning: index) }
      }
    }
    verify(sum, equals: sumOfIndices(below: count), "the sum of the callbacks' values")
  }
}

private final class QueueTaskExecutor: TaskExecutor {
  private let queue = DispatchQueue(label: "executor", attributes: .concurrent)

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}

@concurrent
private func echo(_ value: Int) async -> Int { value }

/// - Returns: the number of functions below and at this place of the tree.
@concurrent
private func tree(depth: Int) async -> Int {
  guard depth > 0 else { return 1 }
  async let left = tree(depth: depth - 1)
  async let right = tree(depth: depth - 1)
  return await left + right + 1
}
