import Concourse
import Testing

/// Actors on queues.
@Suite("SerialExecutor", .timeLimit(.minutes(10)))
struct SerialExecutorTests {
  // `Task.immediate` runs up to the first suspension, so its job has been submitted when it returns.

  @Test("jobs of an actor keep their place among the items of its queue")
  func order() async {
    let queue = DispatchSerialQueue(label: "actor")
    let scribe = Scribe(queue)
    queue.suspend()
    queue.async { scribe.assumeIsolated { $0.note(1) } }
    let second = Task.immediate { await scribe.note(2) }
    queue.async { scribe.assumeIsolated { $0.note(3) } }
    let fourth = Task.immediate { await scribe.note(4) }
    queue.resume()
    await second.value
    await fourth.value
    #expect(await scribe.notes == [1, 2, 3, 4])
  }

  @Test("a suspended queue holds the actor's jobs, and so does an inactive one")
  func held() async {
    let suspended = DispatchSerialQueue(label: "suspended")
    suspended.suspend()
    let inactive = DispatchSerialQueue(label: "inactive", attributes: .initiallyInactive)
    let target = DispatchSerialQueue(label: "target")
    inactive.setTarget(queue: target)
    for queue in [suspended, inactive] {
      let counter = Unprotected(0)
      let scribe = Scribe(queue, counter: counter)
      let job = Task.immediate { await scribe.count() }
      // Items that must not run have as much time as another queue's items.
      await DispatchQueue.global().run {}
      #expect(counter.value == 0)
      if queue === suspended { queue.resume() } else { queue.activate() }
      await job.value
      #expect(counter.value == 1)
    }
    #expect(suspended.isSameExclusiveExecutionContext(other: target) == false)
    #expect(inactive.isSameExclusiveExecutionContext(other: target))
  }

  @Test("jobs, asynchronous and synchronous items of one queue exclude one another")
  func exclusion() async {
    let queue = DispatchSerialQueue(label: "actor")
    let counter = Unprotected(0)
    let scribe = Scribe(queue, counter: counter)
    let group = DispatchGroup()
    await withTaskGroup { tasks in
      for _ in 0..<8 {
        tasks.addTask {
          for _ in 0..<300 {
            await scribe.count()
            queue.async(group: group) { scribe.countHere() }
            queue.sync { scribe.countHere() }
          }
        }
      }
    }
    await group.finished()
    #expect(await scribe.perform { counter.value } == 8 * 300 * 3)
  }

  @Test("actors on two queues with one serial target exclude one another", arguments: [false, true])
  func hierarchy(throughConcurrentQueue: Bool) async {
    let target = DispatchSerialQueue(label: "target")
    let middle = throughConcurrentQueue ? DispatchConcurrentQueue(label: "middle", target: target) : target
    let counter = Unprotected(0)
    let scribes = (0..<2).map { number in
      Scribe(DispatchSerialQueue(label: "actor \(number)", target: middle), counter: counter)
    }
    await withTaskGroup { tasks in
      for index in 0..<8 {
        tasks.addTask {
          for _ in 0..<500 {
            await scribes[index % 2].count()
            await scribes[(index + 1) % 2].perform { scribes[index % 2].countHere() }
          }
        }
      }
    }
    #expect(target.sync { counter.value } == 8 * 500 * 2)
  }

  @Test("assumeIsolated holds in all items that exclude the actor's jobs")
  func assumed() async {
    let target = DispatchSerialQueue(label: "target")
    let queue = DispatchSerialQueue(label: "queue", target: target)
    let child = DispatchQueue(label: "child", target: queue)
    let sibling = DispatchQueue(label: "sibling", attributes: .concurrent, target: target)
    let scribe = Scribe(queue, counter: Unprotected(0))
    for place in [target, queue, child, sibling] {
      place.sync { scribe.countHere() }
      place.asyncAndWait { scribe.countHere() }
      await place.run { scribe.countHere() }
      await withTaskExecutorPreference(place) { scribe.countHere() }
      // A synchronous item belongs to the item that waits for it.
      place.sync { DispatchQueue(label: "other").sync { scribe.countHere() } }
      place.sync { queue.preconditionIsolated() }
    }
    #expect(queue.isIsolatingCurrentContext() == nil)
    #expect(queue.sync { queue.isIsolatingCurrentContext() } == true)
    #expect(DispatchQueue.global().sync { queue.isIsolatingCurrentContext() } == nil)
  }

  @Test("which executors share an exclusive execution context")
  func sameContext() {
    let target = DispatchSerialQueue(label: "target")
    let left = DispatchSerialQueue(label: "left", target: DispatchConcurrentQueue(label: "c", target: target))
    let right = DispatchSerialQueue(label: "right", target: target)
    let shared = DispatchConcurrentQueue(label: "shared")
    let first = DispatchSerialQueue(label: "first", target: shared)
    let second = DispatchSerialQueue(label: "second", target: shared)
    let main = DispatchSerialQueue(label: "on main", target: .main)
    let otherMain = DispatchSerialQueue(label: "also on main", target: .main)
    #expect(left.isSameExclusiveExecutionContext(other: right))
    #expect(right.isSameExclusiveExecutionContext(other: target))
    #expect(first.isSameExclusiveExecutionContext(other: first))
    #expect(!first.isSameExclusiveExecutionContext(other: second))
    #expect(!first.isSameExclusiveExecutionContext(other: right))
    #expect(main.isSameExclusiveExecutionContext(other: otherMain))
    let workloop = DispatchWorkloop(label: "workloop")
    #expect(workloop.isSameExclusiveExecutionContext(other: workloop))
    #expect(!workloop.isSameExclusiveExecutionContext(other: DispatchWorkloop(label: "other")))
  }

  @Test("long chains of hops, between two actors and between an actor and no actor")
  func chains() async {
    let counter = Unprotected(0)
    let target = DispatchSerialQueue(label: "target")
    let left = Scribe(DispatchSerialQueue(label: "left", target: target), counter: counter)
    let right = Scribe(DispatchSerialQueue(label: "right", target: target), counter: counter)
    await left.pass(to: right, rounds: 20_000)
    await left.leaveAndReturn(rounds: 20_000)
    #expect(target.sync { counter.value } == 40_000)
  }

  @Test("an actor sleeps without its queue, wakes up on it, and is woken by cancellation")
  func sleeping() async {
    let scribe = Scribe(DispatchSerialQueue(label: "actor"))
    #expect(await scribe.sleep(for: .milliseconds(1)))
    let long = Task { await scribe.sleep(for: .seconds(3600)) }
    // The queue is free meanwhile.
    await scribe.note(1)
    long.cancel()
    #expect(await long.value == false)
  }

  @Test("an isolated deinit runs on the queue")
  func deinitialiser() async {
    let queue = DispatchSerialQueue(label: "actor")
    await withCheckedContinuation { ended in
      _ = Mortal(queue) {
        dispatchPrecondition(condition: .onQueue(queue))
        ended.resume()
      }
    }
  }

  @Test("a job is served at its task's priority, unless its queue has a class")
  func priority() async {
    let classed = Scribe(DispatchSerialQueue(label: "utility", qos: .utility))
    let bands: [(TaskPriority, String)] = [
      (.background, "concourse-bg"), (.utility, "concourse-ut"), (.medium, "concourse"), (.high, "concourse"),
    ]
    for (priority, band) in bands {
      // A new queue each time: the thread that has just served a queue may take its next item.
      let free = Scribe(DispatchSerialQueue(label: "free"))
      // Detached and awaited through a stream: awaiting its value would raise the task's priority.
      let (names, channel) = AsyncStream.makeStream(of: String.self)
      Task.detached(priority: priority) {
        channel.yield(await free.perform { threadName() })
        channel.yield(await classed.perform { threadName() })
        channel.finish()
      }
      var seen: [String] = []
      for await name in names { seen.append(name) }
      #expect(seen == [band, "concourse-ut"])
    }
  }

  @Test("a workloop runs an actor's most urgent job first")
  func workloop() async {
    let workloop = DispatchWorkloop(label: "workloop")
    let actor = Urgent(workloop)
    workloop.suspend()
    var jobs: [Task<Void, Never>] = []
    for (number, priority) in [TaskPriority.background, .utility, .medium, .high].enumerated() {
      jobs.append(Task.immediate(priority: priority) { await actor.note(number) })
    }
    workloop.resume()
    for job in jobs { await job.value }
    #expect(await actor.notes == [3, 2, 1, 0])
  }

  @Test("an executor built on a queue")
  func wrapped() async {
    let wrapper = Wrapper()
    let actor = Wrapped(wrapper)
    for round in 1...3 { #expect(await actor.visit() == round) }
    wrapper.queue.sync { actor.assumeIsolated { $0.check() } }
  }
}

private actor Mortal {
  private nonisolated let queue: DispatchSerialQueue
  nonisolated var unownedExecutor: UnownedSerialExecutor { queue.asUnownedSerialExecutor() }
  private let end: @Sendable () -> Void

  init(_ queue: DispatchSerialQueue, _ end: @escaping @Sendable () -> Void) {
    self.queue = queue
    self.end = end
  }

  isolated deinit { end() }
}

private actor Urgent {
  private nonisolated let workloop: DispatchWorkloop
  nonisolated var unownedExecutor: UnownedSerialExecutor { workloop.asUnownedSerialExecutor() }
  private(set) var notes: [Int] = []

  init(_ workloop: DispatchWorkloop) { self.workloop = workloop }

  func note(_ number: Int) {
    dispatchPrecondition(condition: .onQueue(workloop))
    notes.append(number)
  }
}

/// An executor that passes its jobs to a queue and shares its isolation.
private final class Wrapper: SerialExecutor {
  let queue = DispatchSerialQueue(label: "wrapped")
  func enqueue(_ job: consuming ExecutorJob) { queue.enqueue(job) }
  func asUnownedSerialExecutor() -> UnownedSerialExecutor { queue.asUnownedSerialExecutor() }
}

private actor Wrapped {
  private nonisolated let wrapper: Wrapper
  nonisolated var unownedExecutor: UnownedSerialExecutor { wrapper.asUnownedSerialExecutor() }
  private var visits = 0

  init(_ wrapper: Wrapper) { self.wrapper = wrapper }

  func visit() -> Int {
    check()
    visits += 1
    return visits
  }

  func check() { dispatchPrecondition(condition: .onQueue(wrapper.queue)) }
}
