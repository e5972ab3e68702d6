import Testing

@testable import ConcourseModel

/// What only some queues do: limits of width, changes of target and of class under way, items held back by a
/// suspension, the main queue and run-loop queues, and parallel loops.
extension ModelSuite {
  @Suite struct Kinds {
    // MARK: Width

    /// No more than two of three items overlap, also if the limit is set meanwhile.
    private static func limitedWidth(settingIt: Bool) {
      let queue = DispatchQueue(label: "narrow", attributes: .concurrent)
      queue.setWidth(2)
      let log = Model.Log<Int>()
      let running = Model.Log<Int>()
      for index in 0..<3 {
        Model.thread("reader \(index)") {
          queue.sync {
            running.append(1)
            Model.check(running.entries.reduce(0, +) <= 2, "three items overlap")
            log.append(index)
            running.append(-1)
          }
        }
      }
      if settingIt { Model.thread("setter") { queue.setWidth(1) } }
      Model.run()
      Model.check(log.entries.sorted() == [0, 1, 2], "only \(log.entries) ran")
      Queues.checkIdle(queue)
    }

    @Test(arguments: [false, true]) func widths(settingIt: Bool) {
      expectComplete(
        Model.explore("a width of two\(settingIt ? ", then one" : "")", bound: 1, stale: settingIt ? 0 : 1) {
          Self.limitedWidth(settingIt: settingIt)
        })
    }

    /// The second item waits for the first, which waits for a thread, or, after the limit has been raised, for the
    /// second.
    private static func widthOfOne(isWidened: Bool) {
      Model.setProcessors(1)
      let queue = DispatchQueue(label: "narrow", attributes: .concurrent)
      queue.setWidth(1)
      let ended = Model.Cell(false, "ended")
      let go = DispatchSemaphore(value: 0)
      Model.thread("client") {
        queue.async {
          go.wait()
          if !isWidened { ended.write(true) }
        }
        queue.async {
          if isWidened { go.signal() } else { Model.check(ended.read(), "both run") }
        }
      }
      Model.thread("other") { if isWidened { queue.setWidth(2) } else { go.signal() } }
      Model.run()
      Queues.checkIdle(queue)
    }

    @Test(arguments: [false, true]) func widthsOfOne(isWidened: Bool) {
      expectComplete(
        Model.explore("a width of one\(isWidened ? ", then two" : "")", bound: 1, stale: 0) {
          Self.widthOfOne(isWidened: isWidened)
        })
    }

    @Test func faultsOfWidthsAreFound() {
      expectFound(
        PlantedFault(.noWrite, "QueueState+Readers", "takeReaderPlace(limit:collided:)"),
        PlantedFault(.noWake, "ThreadEvent", "signal()"), bound: 2, stale: 0
      ) { Self.limitedWidth(settingIt: false) }
    }

    // MARK: Retargeting an active queue

    private static func makeQueue(_ label: String, qos: DispatchQoS = .unspecified) -> DispatchQueue {
      DispatchQueue(
        kind: .serial, label: QueueName(label), qos: qos, attributes: [], target: nil, mayChangeTarget: true)
    }

    /// What comes after the change excludes the items of the new target.
    private static func retargetAgainstSync() {
      Model.setProcessors(1)
      let target = DispatchQueue(label: "target")
      let queue = makeQueue("queue")
      let track = Queues.Track()
      Model.thread("owner") {
        queue.setTarget(queue: target)
        queue.sync(execute: track.alone("a1"))
      }
      Model.thread("inside") { target.sync(execute: track.alone("b1")) }
      Model.thread("other") { queue.sync { track.log.append("c1") } }
      Model.run()
      track.check(["a1"], ["b1"], ["c1"])
      Model.check(queue.targetQueue === target, "not the new target")
      Queues.checkIdle(queue, target)
    }

    @Test func retargetingAgainstSync() {
      expectComplete(
        Model.explore("a change of target against sync", bound: 1) { Self.retargetAgainstSync() })
      expectFound(
        PlantedFault(.noWrite, "SeldomChanged", "value"), PlantedFault(.relaxed, "QueueState"),
        PlantedFault(.noWake, "ThreadEvent", "signal()")
      ) { Self.retargetAgainstSync() }
    }

    /// Two threads change the target; the items run once, and the target is one of the two.
    private static func twoChanges() {
      Model.setProcessors(1)
      let targets = [DispatchQueue(label: "one"), DispatchQueue(label: "other")]
      let queue = makeQueue("queue")
      let track = Queues.Track()
      for (index, name) in ["a1", "b1"].enumerated() {
        Model.thread(name) {
          queue.async(execute: track.alone(name))
          queue.setTarget(queue: targets[index])
        }
      }
      Model.run()
      track.check(["a1"], ["b1"])
      Model.check(targets.contains { queue.targetQueue === $0 }, "neither target")
      Queues.checkIdle(queue, targets[0], targets[1])
    }

    /// An item of a higher class is put to the queue, which waits for its worker at a lower one, while its target
    /// changes.
    private static func changeAgainstRaise() {
      Model.setProcessors(1)
      let target = DispatchQueue(label: "target")
      let queue = makeQueue("queue")
      let track = Queues.Track()
      Model.thread("client") {
        queue.async(qos: .default, execute: track.alone("a1"))
        queue.async(qos: .userInteractive, execute: track.alone("a2"))
      }
      Model.thread("owner") { queue.setTarget(queue: target) }
      Model.run()
      track.check(["a1", "a2"])
      Queues.checkIdle(queue, target)
    }

    @Test func retargetingAgainstItems() {
      expectComplete(
        Model.explore("two changes of target", bound: 1, stale: 0) { Self.twoChanges() })
      expectComplete(
        Model.explore("a change of target against a raise", bound: 1, stale: 0) { Self.changeAgainstRaise() })
      expectFound(PlantedFault(.noWrite, "SeldomChanged", "value"), stale: 0) { Self.changeAgainstRaise() }
    }

    /// A thread that waits for a queue looks at the target, which was made and set before the activation.
    @Test func activationWithATargetAgainstSync() {
      expectComplete(
        Model.explore("activation with a target against sync", bound: 1) {
          Model.setProcessors(1)
          let queue = DispatchQueue(label: "inactive", attributes: .initiallyInactive)
          let track = Queues.Track()
          Model.thread("waiter") { queue.sync(execute: track.alone("a1")) }
          Model.thread("owner") {
            queue.setTarget(queue: DispatchQueue(label: "target"))
            queue.activate()
          }
          Model.run()
          track.check(["a1"])
        })
    }

    // MARK: Raising

    /// A queue that waits at a low class gets an item of a high one: both run before what came in between.
    private static func raise() {
      Model.setProcessors(1)
      let queue = DispatchQueue(label: "raised")
      let track = Queues.Track()
      Model.thread("client") {
        // The only worker runs this item, so everything else waits.
        DispatchQueue.global().async {
          queue.async(qos: .default, execute: track.alone("a1"))
          DispatchQueue.global().async(execute: track.alone("between"))
          // Displaces the queue from the worker's slot: now it lies behind.
          DispatchQueue(label: "other").async {}
          queue.async(qos: .userInteractive, execute: track.alone("a2"))
        }
      }
      Model.run()
      track.check(["a1", "a2"], ["between"])
      let order = track.log.entries
      Model.check(order.last == "between", "ran in the order \(order)")
      Queues.checkIdle(queue)
    }

    @Test func raising() {
      expectComplete(Model.explore("a higher class raises a queue", bound: 1, freshBound: 3) { Self.raise() })
      expectFound(PlantedFault(.noWrite, "Band", "keep(_:on:)")) { Self.raise() }
    }

    /// Two threads raise a queue while a worker takes it.
    @Test func twoRaises() {
      expectComplete(
        Model.explore("two raises against a drain", bound: 1, stale: 0) {
          Model.setProcessors(1)
          let queue = DispatchQueue(label: "raised")
          let track = Queues.Track()
          queue.async(qos: .default, execute: track.alone("a1"))
          Model.thread("left") { queue.async(qos: .userInitiated, execute: track.alone("b1")) }
          Model.thread("right") { queue.async(qos: .userInteractive, execute: track.alone("c1")) }
          Model.run()
          track.check(["a1"], ["b1"], ["c1"])
          Model.check(track.log.entries.first == "a1", "the oldest was overtaken")
          Queues.checkIdle(queue)
        })
    }

    // MARK: Workloops

    private static func classesOfAWorkloop() {
      Model.setProcessors(1)
      let workloop = DispatchWorkloop(label: "workloop")
      let track = Queues.Track()
      Model.thread("low") { workloop.async(qos: .default, execute: track.alone("a1")) }
      Model.thread("high") {
        workloop.async(qos: .userInitiated, execute: track.alone("b1"))
        workloop.asyncAndWait(execute: track.alone("b2"))
      }
      Model.run()
      track.check(["a1"], ["b1"], ["b2"])
      Queues.checkIdle(workloop)
    }

    @Test func workloops() {
      expectComplete(
        Model.explore("classes of a workloop", bound: 1, stale: 0) { Self.classesOfAWorkloop() })
      expectFound(
        PlantedFault(.noWake, "ThreadEvent", "signal()"), PlantedFault(.relaxed, "WorkList")
      ) { Self.classesOfAWorkloop() }
    }

    // MARK: Suspension

    /// Items of a concurrent queue that were admitted before it was suspended, twice, and one that comes later.
    private static func heldBack() {
      Model.setProcessors(1)
      let target = DispatchQueue(label: "target")
      let queue = DispatchQueue(label: "concurrent", attributes: .concurrent, target: target)
      let track = Queues.Track()
      Model.thread("client") {
        queue.async(execute: track.alone("a1"))
        queue.async(execute: track.alone("a2"))
        queue.async(execute: track.alone("a3"))
      }
      Model.thread("holder") {
        queue.suspend()
        queue.resume()
        queue.suspend()
        queue.resume()
      }
      Model.run()
      track.check(["a1", "a2", "a3"])
      Queues.checkIdle(target, queue)
    }

    @Test func aChainIsUsedAgain() {
      expectComplete(
        Model.explore("a chain that is emptied twice", bound: 0) {
          var chain = NodeChain()
          let node = NodeMagazine.make(.closure({}), level: .default)
          for _ in 0..<2 {
            chain.append(node)
            Model.check(chain.takeFirst() == node && chain.isEmpty, "the node is not in the chain")
          }
        })
    }

    @Test func heldBackItems() {
      expectComplete(Model.explore("items held back twice", bound: 1) { Self.heldBack() })
      expectFound(
        PlantedFault(.noWrite, "DispatchQueue+Suspension", "itemToRun(for:_:)"),
        PlantedFault(.noWrite, "Lock", "lock()"), bound: 2, stale: 0
      ) { Self.heldBack() }
    }

    // MARK: The main queue

    private static func mainQueue() {
      let queue = DispatchQueue(label: "on main", target: .main)
      let track = Queues.Track()
      Model.background("main thread") {
        Process.becomeMainThread()
        dispatchMain()
      }
      Model.thread("left") {
        DispatchQueue.main.async(execute: track.alone("a1"))
        DispatchQueue.main.sync(execute: track.alone("a2"))
      }
      Model.thread("right") { queue.async(execute: track.alone("b1")) }
      Model.run()
      track.check(["a1", "a2"], ["b1"])
    }

    @Test func dispatchMainServesAll() {
      expectComplete(Model.explore("dispatchMain", bound: 1) { Self.mainQueue() })
      expectComplete(Model.explore("dispatchMain, stale", bound: 0, stale: 2) { Self.mainQueue() })
      expectFound(
        PlantedFault(.noWake, "MainThread", "wake()"),
        PlantedFault(.noWrite, "MainThread", "sleepUntilItems()"),
        PlantedFault(.noWake, "ThreadEvent", "signal()")
      ) { Self.mainQueue() }
    }

    /// A run loop of the program watches the descriptor of the main queue.
    private static func mainQueueInARunLoop() {
      let log = Model.Log<String>()
      Model.thread("main thread") {
        Process.becomeMainThread()
        let descriptor = DispatchQueue.mainQueueDescriptor
        while log.entries.count < 4 {
          ModelKernel.waitUntilReadable(descriptor)
          DispatchQueue.drainMainQueue()
        }
      }
      Model.thread("left") {
        DispatchQueue.main.async {
          log.append("a1")
          DispatchQueue.main.async { log.append("a2") }
        }
      }
      Model.thread("right") {
        // The descriptor may not exist yet, and exists at the second time.
        let ran = DispatchSemaphore(value: 0)
        DispatchQueue.main.async {
          log.append("b1")
          ran.signal()
        }
        ran.wait()
        DispatchQueue.main.async { log.append("b2") }
      }
      Model.run()
      Model.check(log.entries.sorted() == ["a1", "a2", "b1", "b2"], "\(log.entries) ran")
    }

    @Test func aRunLoopServesTheMainQueue() {
      expectComplete(
        Model.explore("the main queue in a run loop", bound: 2) { Self.mainQueueInARunLoop() })
      expectFound(
        PlantedFault(.noWake, "ModelKernel", "concourse_eventfd_signal(_:)"),
        PlantedFault(.relaxed, "MainThread", "descriptor()"), bound: 2
      ) { Self.mainQueueInARunLoop() }
    }

    // MARK: Run-loop queues

    private static func runLoopQueue() {
      let queue = RunLoopQueue(label: "run loop")
      let nested = DispatchQueue(label: "nested", target: queue)
      let track = Queues.Track()
      Model.thread("performer") {
        while track.log.entries.count < 3 { if !queue.perform() { Processor.pause() } }
      }
      Model.thread("left") {
        queue.async(execute: track.alone("a1"))
        queue.sync(execute: track.alone("a2"))
      }
      Model.thread("right") { nested.sync(execute: track.alone("b1")) }
      Model.run()
      track.check(["a1", "a2"], ["b1"])
    }

    @Test func runLoopQueues() {
      expectComplete(Model.explore("a run-loop queue", bound: 1, stale: 0) { Self.runLoopQueue() })
      expectFound(
        PlantedFault(.noWake, "ThreadEvent", "signal()"),
        PlantedFault(.relaxed, "ThreadEvent", "signal()")
      ) { Self.runLoopQueue() }
    }

    // MARK: Parallel loops

    /// Each iteration runs once, and the call returns after the last.
    private static func parallelLoop(_ helped: Count) {
      Model.setProcessors(2)
      let cells = (0..<3).map { Model.Cell(0, "iteration \($0)") }
      Model.thread("caller") {
        let caller = CurrentThread.id
        DispatchQueue.concurrentPerform(iterations: 3) { index in
          cells[index].change { $0 += 1 }
          if CurrentThread.id != caller { helped.value += 1 }
        }
        Model.check(cells.allSatisfy { $0.read() == 1 }, "not every iteration ran once")
        checkDepth()
      }
      Model.run()
      // ORDERING: relaxed; everybody has come to rest.
      Model.check(ParallelLoop.participants.count.load(ordering: .relaxed) == 0, "participants are left")
    }

    /// The calling thread has left the loop.
    private static func checkDepth() {
      Model.check(CurrentThread.state.pointee.loop_depth == 0, "the thread is still in a loop")
    }

    /// A loop of one iteration, and two that have no processors for helpers.
    private static func loopWithoutHelpers(_ iterations: Int, callers: Int) {
      Model.setProcessors(1)
      let log = Model.Log<Int>()
      for _ in 0..<callers {
        Model.thread("caller") {
          DispatchQueue.concurrentPerform(iterations: iterations) { log.append($0) }
          checkDepth()
        }
      }
      Model.run()
      // ORDERING: relaxed; everybody has come to rest.
      Model.check(ParallelLoop.participants.count.load(ordering: .relaxed) == 0, "participants are left")
      Model.check(log.entries.count == callers * iterations, "\(log.entries) ran")
      Model.check(Runtime.shared.bands[0].counters.snapshot.threads == 0, "a worker was made")
    }

    @Test func loopsWithoutHelpers() {
      for (iterations, callers) in [(1, 1), (2, 2)] {
        expectComplete(
          Model.explore("a loop without helpers", bound: 1) {
            Self.loopWithoutHelpers(iterations, callers: callers)
          })
      }
    }

    /// In a forked child, which has no workers, the caller runs all iterations.
    private static func loopInAChild() {
      Model.setProcessors(2)
      let log = Model.Log<Int>()
      DispatchQueue.global().async {}
      Model.run()
      Model.thread("caller") {
        Process.fork()
        DispatchQueue.concurrentPerform(iterations: 2) { log.append($0) }
        Model.check(log.entries == [0, 1], "\(log.entries) ran")
        Model.check(Runtime.shared.bands.allSatisfy { !$0.hasWork }, "helpers that never run")
      }
      Model.run()
    }

    @Test func loopsInForkedChildren() {
      expectComplete(Model.explore("a loop in a forked child", bound: 1) { Self.loopInAChild() })
    }

    /// The helper comes last: the caller alone runs all iterations.
    private static func lateHelper() {
      Model.setProcessors(2)
      PoolSize.cap = 1
      let busy = DispatchSemaphore(value: 0)
      Model.thread("caller") {
        // All workers wait until the loop has ended.
        for _ in 0..<2 { DispatchQueue.global().async { busy.wait() } }
        DispatchQueue.concurrentPerform(iterations: 2) { _ in }
        for _ in 0..<2 { busy.signal() }
      }
      Model.run()
    }

    @Test func theCallerTakesPart() {
      let cap = PoolSize.cap
      defer { PoolSize.cap = cap }
      expectComplete(Model.explore("a loop whose helper is late", bound: 1, stale: 0) { Self.lateHelper() })
    }

    @Test func parallelLoops() {
      let helped = Count()
      expectComplete(Model.explore("a parallel loop", bound: 2, freshBound: 3) { Self.parallelLoop(helped) })
      #expect(helped.value > 0, "no helper took part")
      expectFound(
        PlantedFault(.noWake, "ThreadEvent", "signal()"),
        PlantedFault(.relaxed, "ParallelLoop", "takePart(asHelper:)"),
        bound: 2
      ) { Self.parallelLoop(helped) }
    }
  }
}

/// Counts across all executions of an exploration.
final class Count: @unchecked Sendable {  // SAFETY: the coroutines take turns on one thread.
  var value = 0
}
