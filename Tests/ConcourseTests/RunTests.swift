import Concourse
import Testing

/// Closures that tasks run on queues.
@Suite("DispatchQueue.run", .timeLimit(.minutes(10)))
struct RunTests {
  @Test("the closure runs on the queue and its value comes back", arguments: TaskExecutorTests.kinds)
  func value(_ queue: DispatchQueue) async {
    let label = await queue.run {
      dispatchPrecondition(condition: .onQueue(queue))
      return DispatchQueue.currentLabel
    }
    #expect(label == queue.label)
  }

  @Test("values that are not Sendable can be passed in and returned")
  func notSendable() async {
    let box = Box(1)
    let other = await DispatchQueue.global().run {
      box.value += 1
      return box
    }
    other.value += 1
    #expect(other.value == 3)
  }

  @Test("errors of the closure are rethrown with their type")
  func typedThrows() async {
    let queue = DispatchQueue(label: "queue")
    do {
      try await queue.run { () throws(Refusal) in throw Refusal(code: 7) }
      Issue.record("nothing was thrown")
    } catch {
      // Compiles only because the type is known.
      #expect(error.code == 7)
    }
  }

  @Test("items keep their order, and no thread waits for them")
  func order() async {
    let queue = DispatchSerialQueue(label: "queue")
    let counter = Unprotected(0)
    queue.suspend()
    var tasks: [Task<Int, Never>] = []
    for _ in 0..<2_000 {
      tasks.append(
        Task.immediate {
          await queue.run {
            counter.value += 1
            return counter.value
          }
        })
    }
    queue.async { counter.value = -1 }
    queue.resume()
    for (index, task) in tasks.enumerated() { #expect(await task.value == index + 1) }
    #expect(queue.sync { counter.value } == -1)
  }

  @Test("a barrier runs alone on a concurrent queue")
  func barrier() async {
    let queue = DispatchConcurrentQueue(label: "queue")
    await queue.run(flags: .barrier) { dispatchPrecondition(condition: .onQueueAsBarrier(queue)) }
    await queue.run { dispatchPrecondition(condition: .onQueue(queue)) }
  }

  @Test("an actor may call it on its own queue, and is isolated again afterwards")
  func ownQueue() async {
    let scribe = Scribe(DispatchSerialQueue(label: "actor"))
    await scribe.noteThroughQueue(1)
    await scribe.noteThroughQueue(2)
    #expect(await scribe.notes == [1, 2])
  }

  @Test("captures are released before the caller continues, and only the caller holds the result")
  func release() async {
    let queue = DispatchQueue(label: "queue")
    for _ in 0..<200 {
      weak var observed: Token?
      do {
        let token = Token()
        observed = token
        #expect(await queue.run { token.number } == 5)
      }
      #expect(observed == nil)
      weak var result: Token?
      do {
        let token = await queue.run { Token() }
        result = token
        #expect(token.number == 5)
      }
      #expect(result == nil)
    }
  }

  @Test("a cancelled task's closure still runs")
  func cancellation() async {
    let queue = DispatchSerialQueue(label: "queue")
    queue.suspend()
    let task = Task.immediate { () -> Int in
      let value = await queue.run { 3 }
      return Task.isCancelled ? value : 0
    }
    task.cancel()
    queue.resume()
    #expect(await task.value == 3)
  }

  @Test("the task's priority chooses the threads, unless a class is named")
  func priority() async {
    let (names, channel) = AsyncStream.makeStream(of: String.self)
    Task.detached(priority: .background) {
      channel.yield(await DispatchQueue(label: "free").run { threadName() })
      channel.yield(await DispatchQueue(label: "free").run(qos: .utility) { threadName() })
      channel.finish()
    }
    var seen: [String] = []
    for await name in names { seen.append(name) }
    #expect(seen == ["concourse-bg", "concourse-ut"])
  }
}

/// Waiting for groups and work items.
@Suite("finished()", .timeLimit(.minutes(10)))
struct FinishedTests {
  @Test("an empty group is finished, any other when its last item has run")
  func group() async {
    let group = DispatchGroup()
    await group.finished()
    let queue = DispatchSerialQueue(label: "queue")
    let counter = Unprotected(0)
    for _ in 0..<1_000 { queue.async(group: group) { counter.value += 1 } }
    group.enter()
    queue.async {
      counter.value += 1
      group.leave()
    }
    await group.finished()
    #expect(counter.value == 1_001)
  }

  @Test("many tasks wait for one group")
  func manyWaiters() async {
    let group = DispatchGroup()
    group.enter()
    let number = Unprotected(0)
    await withTaskGroup { tasks in
      for _ in 0..<50 {
        tasks.addTask {
          await group.finished()
          #expect(number.value == 1)
        }
      }
      number.value = 1
      group.leave()
    }
  }

  @Test("a work item is finished when it has run, or was skipped")
  func workItem() async {
    let queue = DispatchSerialQueue(label: "queue")
    let number = Unprotected(0)
    let item = DispatchWorkItem { number.value += 1 }
    queue.async(execute: item)
    await item.finished()
    await item.finished()
    #expect(number.value == 1)
    let cancelled = DispatchWorkItem { number.value += 1 }
    cancelled.cancel()
    queue.async(execute: cancelled)
    await cancelled.finished()
    #expect(number.value == 1)
  }
}

private final class Box {
  var value: Int
  init(_ value: Int) { self.value = value }
}

private final class Token: Sendable {
  let number = 5
}

private struct Refusal: Error {
  let code: Int
}

extension Scribe {
  fileprivate func noteThroughQueue(_ number: Int) async {
    let queue = queue
    let seen = await queue.run {
      dispatchPrecondition(condition: .onQueueAsBarrier(queue))
      return number
    }
    preconditionIsolated()
    note(seen)
  }
}
