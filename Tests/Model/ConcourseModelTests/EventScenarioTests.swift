import Testing

@testable import ConcourseModel

/// The event loop over the model's kernel: the worker that waits for events, the loop's own thread, timers, and sources
/// with their backends.
extension ModelSuite {
  @Suite struct Events {
    // MARK: The seat and the interrupt

    /// Items posted to a worker that waits for events, with events arriving meanwhile. The loop's own thread waits
    /// beside it, and either may collect everything.
    private static func postAgainstPolling(posts: Int, events: Int, processors: Int = 1) {
      Model.setProcessors(processors)
      EventLoop.use()
      let log = Model.Log<String>()
      let queue = DispatchQueue.global()
      let pipes = (0..<events).map { _ in ModelKernel.make(.pipe) }
      for pipe in pipes {
        FileWatch(
          descriptor: pipe, interest: .read, owner: WatchOwner { queue.async { log.append("event") } }
        )
        .install()
      }
      if events > 0 { Model.thread("outside") { for pipe in pipes { ModelKernel.write(pipe) } } }
      Model.thread("client") { for _ in 0..<posts { queue.async { log.append("post") } } }
      Model.run()
      Model.check(log.entries.filter { $0 == "post" }.count == posts, "only \(log.entries) ran")
      Model.check(log.entries.filter { $0 == "event" }.count == events, "only \(log.entries) ran")
      Monitoring.checkCounters()
    }

    @Test func postAgainstPolling() {
      expectComplete(
        Model.explore("two posts against polling", bound: 1, freshBound: 3) {
          Self.postAgainstPolling(posts: 2, events: 0)
        })
      expectComplete(
        Model.explore("a post and an event against polling", bound: 1, stale: 0) {
          Self.postAgainstPolling(posts: 1, events: 1)
        })
    }

    /// More than a search can visit.
    @Test func postsAndAnEventAgainstPolling() {
      expectNoFailure(
        Model.random("two posts and an event against polling", runs: 2_000) {
          Self.postAgainstPolling(posts: 2, events: 1)
        })
      // With a second worker, which sleeps on its own event.
      expectNoFailure(
        Model.random("posts and events against two workers", runs: 4_000) {
          Self.postAgainstPolling(posts: 2, events: 2, processors: 2)
        })
    }

    /// The delivery of an event sleeps until an item has run that was posted meanwhile.
    private static func delivery(sleepsUntil posts: Int) {
      Model.setProcessors(1)
      EventLoop.use()
      let (begun, posted, ended) = (
        DispatchSemaphore(value: 0), DispatchSemaphore(value: 0), DispatchSemaphore(value: 0)
      )
      let pipe = ModelKernel.make(.pipe)
      FileWatch(
        descriptor: pipe, interest: .read,
        owner: WatchOwner {
          begun.signal()
          for _ in 0..<posts { posted.wait() }
          ended.signal()
        }
      ).install()
      Model.thread("client") {
        // A worker then waits for events.
        DispatchQueue.global().async { ModelKernel.write(pipe) }
        begun.wait()
        for _ in 0..<posts { DispatchQueue.global().async { posted.signal() } }
        ended.wait()
      }
      Model.run()
    }

    @Test func sleepingDeliveries() {
      expectComplete(
        Model.explore("a delivery sleeps", bound: 1, stale: 0) { Self.delivery(sleepsUntil: 1) })
      expectNoFailure(
        Model.random("a delivery sleeps for two items", runs: 2_000) { Self.delivery(sleepsUntil: 2) })
    }

    /// The delivery of an event blocks in a call that the pool does not know until an item has run that was posted
    /// meanwhile. The monitor replaces the worker, which then counts neither as active nor as searching.
    private static func blockedDelivery() {
      Model.setProcessors(1)
      EventLoop.use()
      let gate = Monitoring.Gate()
      let (begun, ended) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
      let pipe = ModelKernel.make(.pipe)
      FileWatch(
        descriptor: pipe, interest: .read,
        owner: WatchOwner {
          begun.signal()
          gate.pass()
          ended.signal()
        }
      ).install()
      Model.thread("client") {
        // A worker then waits for events.
        DispatchQueue.global().async { ModelKernel.write(pipe) }
        begun.wait()
        DispatchQueue.global().async { gate.open() }
        ended.wait()
      }
      Model.run()
      Monitoring.checkCounters()
    }

    @Test func blockedDeliveries() {
      expectNoFailure(
        Model.random("a delivery blocks", runs: 2_000, allowTime: true) { Self.blockedDelivery() })
      expectFound(PlantedFault(.noWrite, "Monitor+Replacement", "giveUp(_:of:)"), allowTime: true) {
        Self.blockedDelivery()
      }
    }

    /// A worker sleeps in the delivery of an event until another event is delivered. The loop's thread, which may have
    /// waited for the worker's seat, collects that one.
    private static func deliveryThatAwaitsAnother() {
      Model.setProcessors(1)
      EventLoop.use()
      let (begun, other, ended) = (
        DispatchSemaphore(value: 0), DispatchSemaphore(value: 0), DispatchSemaphore(value: 0)
      )
      let pipes = (0..<2).map { _ in ModelKernel.make(.pipe) }
      let first = WatchOwner {
        begun.signal()
        other.wait()
        ended.signal()
      }
      FileWatch(descriptor: pipes[0], interest: .read, owner: first).install()
      FileWatch(descriptor: pipes[1], interest: .read, owner: WatchOwner { other.signal() }).install()
      Model.thread("client") {
        // A worker then waits for events.
        DispatchQueue.global().async { ModelKernel.write(pipes[0]) }
        begun.wait()
        ModelKernel.write(pipes[1])
        ended.wait()
      }
      Model.run()
    }

    @Test func deliveriesThatAwaitOthers() {
      expectComplete(
        Model.explore("a delivery awaits another", bound: 1, stale: 0) { Self.deliveryThatAwaitsAnother() })
      expectFound(PlantedFault(.noWrite, "EventLoop", "leaveSeat()")) { Self.deliveryThatAwaitsAnother() }
      expectFound(PlantedFault(.noWake, "EventLoop", "nudge()")) { Self.deliveryThatAwaitsAnother() }
    }

    /// As `delivery`, but the item is posted before: the loop's thread may collect the interruption and the event together.
    private static func deliveryOfAnInterruption() {
      Model.setProcessors(1)
      EventLoop.use()
      let (posted, ended) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
      let pipe = ModelKernel.make(.pipe)
      let owner = WatchOwner {
        posted.wait()
        ended.signal()
      }
      FileWatch(descriptor: pipe, interest: .read, owner: owner).install()
      // A worker then waits for events.
      DispatchQueue.global().async {}
      Model.run()
      Model.thread("client") {
        DispatchQueue.global().async { posted.signal() }
        ModelKernel.write(pipe)
        ended.wait()
      }
      Model.run()
    }

    @Test func interruptionsBeforeDeliveries() {
      expectComplete(
        Model.explore("an interruption comes with an event", bound: 1, stale: 0) {
          Self.deliveryOfAnInterruption()
        })
      // More preemptions than a search can visit, since the monitor watches deliveries.
      expectNoFailure(
        Model.random("an interruption comes with an event", runs: 4_000) { Self.deliveryOfAnInterruption() })
    }

    @Test func faultsOfTheSeatAreFound() throws {
      for fault in [
        PlantedFault(.noWake, "ModelKernel", "concourse_eventfd_signal(_:)"),
        PlantedFault(.noWrite, "EventLoop", "leaveSeat()"),
        PlantedFault(.noWake, "ThreadEvent", "signal()"),
      ] {
        let result = Model.random("two posts against polling, \(fault)", seed: 42, runs: 4_000, fault: fault)
        {
          Self.postAgainstPolling(posts: 2, events: 1)
        }
        let failure = try #require(result.failure, "\(result)")
        #expect(failure.kind == .check, "\(failure)")
      }
    }

    /// Two threads need the event queue first.
    private static func firstUses() {
      EventLoop.use(begins: false)
      for name in ["left", "right"] {
        Model.thread(name) { Model.check(EventLoop.shared.begin() != nil, "no event queue") }
      }
      Model.run()
    }

    @Test func theEventQueueIsMadeOnce() {
      expectComplete(Model.explore("two threads need the event queue", bound: 2) { Self.firstUses() })
      expectFound(PlantedFault(.relaxed, "EventLoop")) { Self.firstUses() }
    }

    @Test func aWorkerParksBeforeTheFirstTimer() {
      expectComplete(
        Model.explore("a worker parks without an event queue", bound: 1) {
          EventLoop.use(begins: false)
          Model.thread("client") { DispatchQueue.global().async {} }
          Model.run()
        })
    }

    // MARK: Timers

    private static func time(_ nanoseconds: UInt64) -> Deadline { .uptime(Clock.uptimeAtStart + nanoseconds) }

    /// Two delayed items, the later one set first, while the clock moves.
    private static func delays() {
      Model.moveClock()
      Model.setProcessors(1)
      EventLoop.use()
      let queue = DispatchQueue(label: "delayed")
      let log = Model.Log<UInt64>()
      Model.thread("client") {
        for delay: UInt64 in [2_000_000, 1_000_000] {
          let node = NodeMagazine.make(
            .closure({
              Model.check(Clock.uptimeNow >= Clock.uptimeAtStart + delay, "early")
              log.append(delay)
            }), level: .default)
          queue.schedule(node, time(delay))
        }
      }
      Model.thread("clock") {
        Model.advance(nanoseconds: 1_000_000)
        Model.advance(nanoseconds: 1_000_000)
      }
      Model.run()
      Model.check(log.entries.count == 2 && EventLoop.timers.count == 0, "only \(log.entries) ran")
    }

    @Test func delayedItems() {
      expectComplete(Model.explore("delayed items", bound: 1, stale: 0) { Self.delays() })
      expectFound(PlantedFault(.noWrite, "ModelKernel", "set(timer:isWall:to:)"), stale: 0) { Self.delays() }
    }

    /// More timers are due than a thread reports at once.
    private static func manyDelays() {
      Model.moveClock()
      Model.setProcessors(1)
      EventLoop.use()
      let queue = DispatchQueue(label: "delayed")
      let log = Model.Log<UInt64>()
      for index: UInt64 in 1...3 {
        queue.schedule(
          NodeMagazine.make(.closure({ log.append(index) }), level: .default), time(1_000_000 + index))
      }
      Model.thread("clock") { Model.advance(nanoseconds: 2_000_000) }
      Model.run()
      Model.check(log.entries == [1, 2, 3], "\(log.entries) ran")
    }

    @Test func manyDelayedItems() {
      expectComplete(Model.explore("many delayed items", bound: 1, stale: 0) { Self.manyDelays() })
      expectFound(PlantedFault(.noWrite, "TimerTables+Report", "giveUp()"), stale: 0) { Self.manyDelays() }
    }

    /// Two threads may report, each one of two delayed items: the later one does not overtake.
    @Test func delayedItemsInOrder() {
      expectComplete(
        Model.explore("delayed items in order", bound: 2, stale: 0) {
          Model.moveClock()
          Model.setProcessors(1)
          EventLoop.use()
          // A worker that waits for events.
          DispatchQueue.global().async {}
          Model.run()
          let queue = DispatchQueue(label: "delayed")
          let log = Model.Log<UInt64>()
          for delay: UInt64 in [1_000_000, 2_000_000] {
            queue.schedule(
              NodeMagazine.make(.closure({ log.append(delay) }), level: .default), Self.time(delay))
          }
          Model.thread("clock") { for _ in 0..<2 { Model.advance(nanoseconds: 1_000_000) } }
          Model.run()
          Model.check(log.entries == [1_000_000, 2_000_000], "\(log.entries) ran")
        })
    }

    /// Two delayed items on one clock, the later one set first: the kernel's timer is set again for the earlier one,
    /// and after that has run, although nothing else happens until the later one is due.
    private static func oneAfterTheOther(onWall: Bool) {
      Model.moveClock()
      Model.setProcessors(1)
      EventLoop.use()
      let queue = DispatchQueue(label: "delayed")
      let log = Model.Log<UInt64>()
      Model.thread("client") {
        for delay: UInt64 in [10_000_000, 1_000_000] {
          let node = NodeMagazine.make(.closure({ log.append(delay) }), level: .default)
          queue.schedule(node, onWall ? .wall(Clock.wallAtStart + delay) : time(delay))
        }
      }
      Model.run()
      // The second step ends the nap of the loop's thread.
      for (step, count) in [(1_000_000, 1), (2_000_000, 1), (7_000_000, 2)] as [(UInt64, Int)] {
        Model.thread("clock") { Model.advance(nanoseconds: step) }
        Model.run()
        Model.check(log.entries.count == count, "\(log.entries) ran")
        Model.check(EventLoop.timers.count == 2 - count, "\(EventLoop.timers.count) timers")
      }
    }

    @Test(arguments: [false, true]) func timersOneAfterTheOther(onWall: Bool) {
      expectComplete(
        Model.explore("delayed items, one after the other", bound: 1, stale: 0) {
          Self.oneAfterTheOther(onWall: onWall)
        })
    }

    /// An item whose time has passed does not overtake one that was due before it.
    private static func passedDelay(onWall: Bool) {
      Model.moveClock()
      Model.setProcessors(1)
      EventLoop.use()
      let queue = DispatchQueue(label: "delayed")
      let log = Model.Log<Int>()
      func schedule(_ index: Int, _ delay: UInt64) {
        let node = NodeMagazine.make(.closure({ log.append(index) }), level: .default)
        queue.schedule(node, onWall ? .wall(Clock.wallAtStart + delay) : time(delay))
      }
      Model.thread("client") {
        schedule(1, 1_000_000)
        Model.advance(nanoseconds: 2_000_000)
        schedule(2, 1_000_000)
        schedule(3, 2_000_000)
      }
      Model.run()
      Model.check(log.entries == [1, 2, 3], "ran in the order \(log.entries)")
    }

    @Test(arguments: [false, true]) func passedDelays(onWall: Bool) {
      expectComplete(
        Model.explore("delays that have passed", bound: 2, stale: 0) { Self.passedDelay(onWall: onWall) })
    }

    /// A delayed item is cancelled while it becomes due: it ends once, and without waiting for its time.
    private static func cancelAgainstDelay() {
      Model.moveClock()
      Model.setProcessors(1)
      EventLoop.use()
      let queue = DispatchQueue(label: "delayed")
      let ran = Model.Log<Int>()
      let item = DispatchWorkItem { ran.append(1) }
      queue.schedule(item, time(1_000_000))
      Model.thread("clock") { Model.advance(nanoseconds: 1_000_000) }
      Model.thread("canceller") { item.cancel() }
      Model.run()
      Model.check(item.wait(until: .immediate) == .success, "the item never ended")
      Model.check(ran.entries.count <= 1 && EventLoop.timers.count == 0, "a timer is left")
    }

    /// The same without the clock: only the cancellation ends the wait.
    private static func cancelBeforeDelay() {
      Model.setProcessors(1)
      EventLoop.use()
      let item = DispatchWorkItem { Model.check(false, "a cancelled item ran") }
      Model.thread("client") { DispatchQueue.global().schedule(item, time(1_000_000)) }
      Model.thread("canceller") { item.cancel() }
      Model.thread("waiter") { item.wait() }
      Model.run()
    }

    @Test func cancelledDelays() {
      expectComplete(
        Model.explore("cancel against a delay that ends", bound: 1, stale: 0) { Self.cancelAgainstDelay() })
      expectComplete(
        Model.explore("cancel against a delay", bound: 1, stale: 0) { Self.cancelBeforeDelay() })
      expectFound(
        PlantedFault(.noWake, "WorkItemState", "wakeWaiters()"),
        PlantedFault(.noWrite, "WorkItemState", "cancel()"), stale: 0
      ) { Self.cancelBeforeDelay() }
    }

    /// A submission by the wall clock, which is set while it waits.
    private static func clockJump(forwards: Bool) {
      Model.moveClock()
      Model.setProcessors(1)
      EventLoop.use()
      let queue = DispatchQueue(label: "delayed")
      let log = Model.Log<UInt64>()
      let hour: UInt64 = 3_600_000_000_000
      Model.thread("client") {
        queue.schedule(
          NodeMagazine.make(.closure({ log.append(Clock.wallNow) }), level: .default),
          .wall(Clock.wallAtStart + hour))
      }
      Model.thread("clock") {
        if forwards {
          Model.setWall(by: Int64(hour))
        } else {
          Model.setWall(by: -Int64(hour))
          Model.advance(nanoseconds: hour)
        }
      }
      Model.run()
      if forwards {
        Model.check(log.entries.count == 1, "it did not follow the clock")
      } else {
        Model.check(log.entries.isEmpty, "it ran an hour early")
      }
    }

    @Test(arguments: [false, true]) func wallClockJumps(forwards: Bool) {
      expectComplete(
        Model.explore("the wall clock is set", bound: 1, freshBound: 3) { Self.clockJump(forwards: forwards) }
      )
      guard forwards else { return }
      expectFound(PlantedFault(.noWrite, "ModelKernel", "set(timer:isWall:to:)")) {
        Self.clockJump(forwards: true)
      }
    }

    // MARK: Sources

    /// Data is merged by two threads while a third suspends, resumes and cancels. Handlers never overlap; the cancel
    /// handler comes last, once.
    private static func userData(cancels: Bool) {
      Model.setProcessors(1)
      let source = DispatchSource.makeUserDataAddSource(queue: .global())
      let section = Model.Section()
      let log = Model.Log<UInt>()
      let published = Model.Cell(0, "published")
      source.setEventHandler {
        section.alone()
        Model.check(published.read() == 1, "data without what came before")
        log.append(source.data)
      }
      source.setCancelHandler { section.alone { log.append(100) } }
      source.activate()
      published.write(1)
      Model.thread("left") { source.add(data: 1) }
      Model.thread("right") { source.add(data: 2) }
      Model.thread("owner") {
        source.suspend()
        source.resume()
        if cancels { source.cancel() }
      }
      Model.run()
      if cancels {
        Model.check(log.entries.last == 100 && log.entries.filter { $0 == 100 }.count == 1, "\(log.entries)")
      } else {
        Model.check(log.entries.reduce(0, +) == 3, "merged 3, and handled \(log.entries)")
        source.cancel()
        Model.run()
      }
    }

    @Test(arguments: [false, true]) func userDataSources(cancels: Bool) {
      expectComplete(
        Model.explore("user data\(cancels ? ", cancelled" : "")", bound: 1, stale: 0) {
          Self.userData(cancels: cancels)
        })
    }

    /// Each datum is published by the thread that merges it: 1 and 2 in bits, or as the last value.
    private static func publishedData(_ kind: SourceKind) {
      Model.setProcessors(1)
      let source: any DispatchSourceProtocol =
        switch kind {
        case .userDataAdd: DispatchSource.makeUserDataAddSource()
        case .userDataOr: DispatchSource.makeUserDataOrSource()
        default: DispatchSource.makeUserDataReplaceSource()
        }
      let written = (0..<2).map { Model.Cell(0, "written \($0)") }
      source.setEventHandler {
        for index in 0..<2 where source.data & 1 << UInt(index) != 0 {
          Model.check(written[index].read() == 1, "data without what came before")
        }
      }
      source.activate()
      for index in 0..<2 {
        Model.thread("producer \(index)") {
          written[index].write(1)
          source.core.merge(1 << UInt(index), as: kind)
        }
      }
      Model.run()
      source.cancel()
      Model.run()
    }

    @Test func publishedDataOfSources() {
      for kind in [SourceKind.userDataAdd, .userDataOr, .userDataReplace] {
        expectComplete(Model.explore("published data, \(kind)", bound: 1) { Self.publishedData(kind) })
      }
    }

    @Test func faultsOfSourcesAreFound() {
      expectFound(
        PlantedFault(.noWrite, "SourceCore", "callEventHandler(_:)"),
        PlantedFault(.noWrite, "Lock", "lock()"), bound: 1, stale: 0
      ) { Self.userData(cancels: false) }
    }

    /// A read source whose handler leaves bytes, while it is cancelled: afterwards the kernel watches nothing.
    private static func readSource(cancels: Bool) {
      Model.setProcessors(1)
      EventLoop.use()
      let pipe = ModelKernel.make(.pipe)
      let source = DispatchSource.makeReadSource(fileDescriptor: pipe, queue: .global())
      let section = Model.Section()
      let bytes = Model.Log<Int>()
      let ends = Model.Log<Bool>()
      source.setEventHandler {
        section.alone()
        bytes.append(ModelKernel.readAll(pipe))
      }
      source.setCancelHandler {
        section.alone()
        ends.append(ModelKernel.isWatched(pipe))
        ModelKernel.close(pipe)
      }
      source.activate()
      Model.thread("writer") { for _ in 0..<(cancels ? 1 : 2) { ModelKernel.write(pipe) } }
      if cancels { Model.thread("canceller") { source.cancel() } }
      Model.run()
      if cancels {
        Model.check(ends.entries == [false], "cancel handlers: \(ends.entries)")
      } else {
        Model.check(bytes.entries.reduce(0, +) == 2, "read \(bytes.entries)")
        source.cancel()
        Model.run()
      }
      Model.check(EventLoop.files.isEmpty, "a watch is left")
    }

    @Test(arguments: [false, true]) func readSources(cancels: Bool) {
      expectComplete(
        Model.explore("a read source\(cancels ? ", cancelled" : "")", bound: cancels ? 1 : 3, stale: 0) {
          Self.readSource(cancels: cancels)
        })
    }

    @Test func faultsOfReadSourcesAreFound() {
      expectFound(
        PlantedFault(.noWrite, "SourceCore", "callEventHandler(_:)"),
        PlantedFault(.noWrite, "ModelKernel", "control(_:_:_:_:token:)"), stale: 0
      ) { Self.readSource(cancels: false) }
    }

    /// A timer is programmed again and cancelled while it fires.
    private static func timerSource() {
      Model.moveClock()
      Model.setProcessors(1)
      EventLoop.use()
      let source = DispatchSource.makeTimerSource(queue: .global())
      let section = Model.Section()
      let log = Model.Log<UInt>()
      source.setEventHandler {
        section.alone()
        Model.check(Clock.uptimeNow >= Clock.uptimeAtStart + 1_000_000, "early")
        log.append(source.data)
      }
      source.schedule(deadline: DispatchTime(uptimeNanoseconds: Clock.uptimeAtStart + 1_000_000))
      source.activate()
      Model.thread("clock") { Model.advance(nanoseconds: 1_000_000) }
      Model.thread("owner") {
        source.schedule(deadline: DispatchTime(uptimeNanoseconds: Clock.uptimeAtStart + 1_000_000))
      }
      Model.run()
      // Once, or once before it was programmed again.
      Model.check((1...2).contains(log.entries.reduce(0, +)), "fired \(log.entries)")
      source.cancel()
      Model.run()
      Model.check(EventLoop.timers.count == 0, "a timer is left")
    }

    @Test func timerSources() {
      expectComplete(Model.explore("a timer source", bound: 1, stale: 0) { Self.timerSource() })
      expectFound(
        PlantedFault(.noWrite, "ModelKernel", "set(timer:isWall:to:)"),
        PlantedFault(.noWrite, "Lock", "lock()"), stale: 0
      ) { Self.timerSource() }
    }

    /// A timer whose window has begun fires at once; on the wall clock, one that is due later fires then.
    private static func windowOfATimer(onWall: Bool) {
      Model.moveClock()
      Model.setProcessors(1)
      EventLoop.use()
      let source = DispatchSource.makeTimerSource(queue: .global())
      let log = Model.Log<UInt>()
      source.setEventHandler { log.append(source.data) }
      func schedule(_ delay: UInt64) {
        if onWall {
          source.schedule(
            wallDeadline: DispatchWallTime(nanosecondsSinceEpoch: Clock.wallAtStart + delay),
            leeway: .milliseconds(10))
        } else {
          source.schedule(
            deadline: DispatchTime(uptimeNanoseconds: Clock.uptimeAtStart + delay), leeway: .milliseconds(10))
        }
      }
      schedule(0)
      source.activate()
      Model.run()
      Model.check(log.entries == [1], "the window has begun, and it fired \(log.entries)")
      schedule(5_000_000)
      Model.run()
      Model.check(log.entries == [1], "fired early: \(log.entries)")
      Model.thread("clock") { Model.advance(nanoseconds: 20_000_000) }
      Model.run()
      Model.check(log.entries == [1, 1], "fired \(log.entries)")
      // As while another thread reports, when `hasPassed` does not say so.
      let now = onWall ? Clock.wallNow : Clock.uptimeNow
      let hour: UInt64 = 3_600_000_000_000
      let begun = Model.Log<Int>()
      let timer = LoopTimer(owner: Notified { begun.append(1) })
      Model.thread("owner") {
        timer.set(TimerWindow(clock: onWall ? .wall : .uptime, earliest: now, latest: now + hour))
      }
      Model.run()
      Model.check(begun.entries == [1], "notified \(begun.entries.count) times")
      source.cancel()
      Model.run()
      Model.check(EventLoop.timers.count == 0, "a timer is left")
    }

    private final class Notified: TimerOwner {
      private let body: @Sendable () -> Void
      init(_ body: @escaping @Sendable () -> Void) { self.body = body }
      func timerIsDue(_ timer: LoopTimer) { body() }
    }

    @Test(arguments: [false, true]) func windowsOfTimers(onWall: Bool) {
      expectComplete(
        Model.explore("the window of a timer", bound: 1, stale: 0) { Self.windowOfATimer(onWall: onWall) })
    }
  }
}
