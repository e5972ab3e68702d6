import Concourse
import Testing

/// Tasks that prefer a queue.
@Suite("TaskExecutor", .timeLimit(.minutes(10)))
struct TaskExecutorTests {
  static let kinds: [DispatchQueue] = [
    .global(), .global(qos: .utility), DispatchQueue(label: "serial"), DispatchSerialQueue(label: "typed"),
    DispatchConcurrentQueue(label: "concurrent"), DispatchWorkloop(label: "workloop"),
    DispatchConcurrentQueue(label: "nested", target: DispatchSerialQueue(label: "target")),
  ]

  @Test("a task that prefers a queue runs on it, with its children, and comes back to it", arguments: kinds)
  func preferred(_ queue: DispatchQueue) async throws {
    let task = Task(executorPreference: queue) {
      dispatchPrecondition(condition: .onQueue(queue))
      await Task.yield()
      dispatchPrecondition(condition: .onQueue(queue))
      try await Task.sleep(for: .milliseconds(1))
      dispatchPrecondition(condition: .onQueue(queue))
      async let child = ontoQueue(queue)
      let children = await withTaskGroup(returning: Int.self) { group in
        for _ in 0..<20 { group.addTask { await ontoQueue(queue) } }
        return await group.reduce(0, +)
      }
      return await child + children
    }
    #expect(try await task.value == 21)
    await withTaskExecutorPreference(queue) { #expect(await ontoQueue(queue) == 1) }
  }

  @Test("actors keep their own executors")
  func actors() async {
    let queue = DispatchConcurrentQueue(label: "preferred")
    let scribe = Scribe(DispatchSerialQueue(label: "actor"))
    await withTaskExecutorPreference(queue) {
      for number in 0..<100 {
        dispatchPrecondition(condition: .onQueue(queue))
        await scribe.note(number)
      }
    }
    #expect(await scribe.notes == Array(0..<100))
  }

  @Test("an actor on the very queue that the task prefers")
  func both() async {
    let queue = DispatchSerialQueue(label: "both")
    let counter = Unprotected(0)
    let scribe = Scribe(queue, counter: counter)
    await withTaskExecutorPreference(queue) {
      for _ in 0..<100 {
        await scribe.count()
        scribe.countHere()
      }
    }
    #expect(queue.sync { counter.value } == 200)
  }

  @Test("cancellation reaches a task on a queue")
  func cancellation() async {
    let queue = DispatchSerialQueue(label: "preferred")
    let task = Task(executorPreference: queue) {
      do {
        try await Task.sleep(for: .seconds(3600))
      } catch {
        dispatchPrecondition(condition: .onQueue(queue))
        throw error
      }
    }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
  }

  @Test("barriers exclude the jobs of tasks")
  func barriers() async {
    let queue = DispatchConcurrentQueue(label: "shared")
    let number = Unprotected(0)
    await withTaskGroup { group in
      for _ in 0..<4 {
        group.addTask(executorPreference: queue) {
          for _ in 0..<300 {
            let seen = number.value
            #expect(number.value == seen)
            await Task.yield()
          }
        }
        group.addTask {
          for _ in 0..<100 { await queue.run(flags: .barrier) { number.value += 1 } }
        }
      }
    }
    #expect(queue.sync { number.value } == 400)
  }

  @Test("a suspended queue holds its tasks, and a queue lives as long as they do")
  func lifetime() async {
    var queue = Optional(DispatchQueue(label: "forgotten"))
    weak let observed = queue
    queue!.suspend()
    let task = Task(executorPreference: queue) { () -> String in
      await Task.yield()
      return DispatchQueue.currentLabel
    }
    queue!.resume()
    queue = nil
    #expect(await task.value == "forgotten")
    // Only the ending task may still hold the queue.
    while observed != nil { await Task.yield() }
  }

  @Test("the priority of a task chooses the threads")
  func priority() async {
    let queue = DispatchConcurrentQueue(label: "preferred")
    let (names, channel) = AsyncStream.makeStream(of: String.self)
    Task.detached(executorPreference: queue, priority: .background) {
      channel.yield(threadName())
      await Task.yield()
      channel.yield(threadName())
      channel.finish()
    }
    var seen: [String] = []
    for await name in names { seen.append(name) }
    #expect(seen == ["concourse-bg", "concourse-bg"])
  }
}

/// 1 if this runs on `queue`.
private nonisolated func ontoQueue(_ queue: DispatchQueue) async -> Int {
  dispatchPrecondition(condition: .onQueue(queue))
  await Task.yield()
  dispatchPrecondition(condition: .onQueue(queue))
  return 1
}
