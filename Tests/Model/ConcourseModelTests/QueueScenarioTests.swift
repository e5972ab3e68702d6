import Testing

@testable import ConcourseModel

/// The engine's own queues: every interleaving of a few operations, within a bound of preemptions.
///
/// Each scenario checks order, exclusion, that every item ran, and that the queue is idle afterwards.
extension ModelSuite {
  @Suite struct Queues {
    /// Records a scenario's items.
    struct Track: Sendable {
      let log = Model.Log<String>()
      let section = Model.Section()

      /// An item that must run alone. It logs its name.
      func alone(_ name: String) -> @Sendable () -> Void {
        { [self] in section.alone { log.append(name) } }
      }

      /// An item that may overlap others of its kind. It logs its name.
      func together(_ name: String) -> @Sendable () -> Void {
        { [self] in section.together { log.append(name) } }
      }

      /// Checks that exactly these items ran, and that each group kept its order.
      func check(_ groups: [String]...) { check(groups) }

      func check(_ groups: [[String]]) {
        let all = groups.flatMap { $0 }
        Model.check(log.entries.sorted() == all.sorted(), "ran \(log.entries), not \(all)")
        for group in groups {
          let order = log.entries.filter { group.contains($0) }
          Model.check(order == group, "\(order) ran instead of \(group)")
        }
      }
    }

    static func checkIdle(_ queues: DispatchQueue...) {
      for queue in queues {
        let state = queue.state.snapshot
        Model.check(queue.hasNoEntries, "\(queue.label) has entries left: \(state)")
        Model.check(
          !state.isOwned && !state.hasReaders && !state.isPending && !state.isEnqueued,
          "\(queue.label) is not idle: \(state)")
      }
    }

    /// Explores threads that use one queue: their items run, each group in its order, and then the queue is idle.
    private func expectOrder(
      _ name: String, on attributes: DispatchQueue.Attributes = [], bound: Int,
      stale: Int = Model.defaultStale,
      maxExecutions: Int = 100_000, wakesForNothing: Bool = true, _ groups: [String]...,
      threads: @escaping (DispatchQueue, Track) -> Void
    ) {
      expectComplete(
        Model.explore(
          name, bound: bound, stale: stale, maxExecutions: maxExecutions, wakesForNothing: wakesForNothing
        ) {
          let queue = DispatchQueue(label: "queue", attributes: attributes)
          let track = Track()
          threads(queue, track)
          Model.run()
          track.check(groups)
          Self.checkIdle(queue)
        })
    }

    // MARK: - Serial

    @Test func readersHaveALimit() {
      expectComplete(
        Model.explore("as many readers as there may be", bound: 0) {
          let readers = QueueState(plain: false, nested: false, inactive: false)
          let items = QueueState(plain: false, nested: false, inactive: false)
          for place in 0...QueueState.Snapshot.mostReaders {
            let isLast = place == QueueState.Snapshot.mostReaders
            Model.check(readers.takeReaderPlace() != isLast, "place \(place)")
            let isTaken = items.takeItemPlace(shares: true) != nil
            Model.check(isTaken != isLast, "item's place \(place)")
          }
        })
    }

    @Test(arguments: [false, true]) func moreReadersThanThereMayBe(areItems: Bool) {
      expectComplete(
        Model.explore(
          "more \(areItems ? "items" : "readers") than there may be", bound: 0,
          expectedTrap: "items are in flight on one concurrent queue"
        ) {
          let state = QueueState(plain: false, nested: false, inactive: false)
          for _ in 0...QueueState.Snapshot.mostReaders {
            if areItems { _ = state.addItemPlace(shares: true) } else { state.addReaderPlace() }
          }
        })
    }

    @Test func asyncAgainstAsync() {
      expectOrder("async against async", bound: 1, ["a1", "a2"], ["b1"]) { queue, track in
        Model.thread("left") {
          queue.async(execute: track.alone("a1"))
          queue.async(execute: track.alone("a2"))
        }
        Model.thread("right") { queue.async(execute: track.alone("b1")) }
      }
    }

    @Test func syncAgainstAsync() {
      expectOrder("sync against async", bound: 1, ["a1", "a2"], ["b1"]) { queue, track in
        Model.thread("left") {
          queue.async(execute: track.alone("a1"))
          queue.sync(execute: track.alone("a2"))
        }
        Model.thread("right") { queue.sync(execute: track.alone("b1")) }
      }
    }

    @Test func syncAgainstSync() {
      expectOrder("sync against sync", bound: 2, maxExecutions: 200_000, ["a1", "a2"], ["b1"], ["c1"]) {
        queue, track in
        Model.thread("left") {
          queue.sync(execute: track.alone("a1"))
          queue.sync(execute: track.alone("a2"))
        }
        Model.thread("right") { queue.sync(execute: track.alone("b1")) }
        Model.thread("third") { queue.sync(execute: track.alone("c1")) }
      }
    }

    @Test func asyncAndWaitAgainstSync() {
      expectOrder("asyncAndWait against sync", bound: 1, ["a1", "a2"], ["b1"]) { queue, track in
        Model.thread("left") {
          queue.async(execute: track.alone("a1"))
          queue.asyncAndWait(execute: track.alone("a2"))
        }
        Model.thread("right") { queue.sync(execute: track.alone("b1")) }
      }
    }

    // MARK: - Suspension

    @Test func suspendAndResumeAgainstSync() {
      expectOrder("suspend and resume against sync", bound: 2, ["a1", "a2"]) { queue, track in
        Model.thread("holder") {
          queue.suspend()
          queue.resume()
        }
        Model.thread("client") {
          queue.sync(execute: track.alone("a1"))
          queue.sync(execute: track.alone("a2"))
        }
      }
    }

    @Test func anItemSuspendsItsQueue() {
      expectComplete(
        Model.explore("an item suspends its queue", bound: 1) {
          let queue = DispatchQueue(label: "serial", qos: .utility)
          let track = Track()
          let held = Model.Cell(false, "held")
          Model.thread("client") {
            queue.async {
              queue.suspend()
              held.write(true)
            }
            queue.async {
              Model.check(!held.read(), "an item started on a suspended queue")
              track.log.append("after")
            }
          }
          Model.run()
          Model.check(track.log.entries.isEmpty, "an item started on a suspended queue")
          let state = queue.state.snapshot
          Model.check(state.level == .utility, "the class was lost: \(state)")
          Model.thread("resumer") {
            held.write(false)
            queue.resume()
          }
          Model.run()
          track.check(["after"])
          Self.checkIdle(queue)
        })
    }

    @Test func activateAgainstAsync() {
      expectOrder("activate against async", on: .initiallyInactive, bound: 1, ["a1", "a2"]) { queue, track in
        Model.thread("client") {
          queue.async(execute: track.alone("a1"))
          queue.async(execute: track.alone("a2"))
        }
        Model.thread("owner") { queue.activate() }
      }
    }

    /// Two threads make what a queue has only if it is asked for.
    @Test func specificsAgainstSpecifics() {
      expectComplete(
        Model.explore("two threads set specifics", bound: 1) {
          let queue = DispatchQueue(label: "serial")
          let key = DispatchSpecificKey<Int>()
          for value in 1...2 { Model.thread("\(value)") { queue.setSpecific(key: key, value: value) } }
          Model.run()
          Model.check(queue.getSpecific(key: key) != nil, "lost the value")
        })
    }

    // MARK: - Concurrent

    @Test func barrierAgainstReaders() {
      expectOrder("barrier sync against readers", on: .concurrent, bound: 2, ["a1", "a2"], ["b1"]) {
        queue, track in
        Model.thread("reader") {
          queue.sync(execute: track.together("a1"))
          queue.sync(execute: track.together("a2"))
        }
        Model.thread("writer") { queue.sync(flags: .barrier, execute: track.alone("b1")) }
      }
    }

    @Test func asyncBarrierAgainstReaders() {
      expectOrder(
        "barrier async against readers", on: .concurrent, bound: 1, maxExecutions: 200_000,
        wakesForNothing: false, ["a1", "a2", "a3"], ["b1"]
      ) { queue, track in
        Model.thread("client") {
          queue.async(execute: track.together("a1"))
          queue.async(flags: .barrier, execute: track.alone("a2"))
          queue.async(execute: track.together("a3"))
        }
        Model.thread("reader") { queue.sync(execute: track.together("b1")) }
      }
    }

    /// The item that one drain admits may have ended when the drain reaches the next barrier.
    @Test func barriersAroundAReader() {
      expectOrder("a barrier, a reader, a barrier", on: .concurrent, bound: 1, stale: 0, ["a1", "a2", "a3"]) {
        queue, track in
        Model.thread("client") {
          queue.async(flags: .barrier, execute: track.alone("a1"))
          queue.async(execute: track.together("a2"))
          queue.async(flags: .barrier, execute: track.alone("a3"))
        }
      }
    }

    /// The last reader ends while the worker that has admitted it still owns the queue, whose list was empty when more
    /// work came.
    @Test func readerAgainstItsOwner() {
      expectOrder("a reader ends, its owner goes on", on: .concurrent, bound: 1, stale: 0, ["a1"], ["b1"]) {
        queue, track in
        queue.suspend()
        queue.async(execute: track.together("a1"))
        Model.thread("resumer") { queue.resume() }
        Model.thread("client") { queue.async(flags: .barrier, execute: track.alone("b1")) }
      }
    }

    @Test func suspendAgainstReaders() {
      expectOrder("suspend against readers", on: .concurrent, bound: 1, ["a1", "a2"]) { queue, track in
        Model.thread("client") {
          queue.async(execute: track.together("a1"))
          queue.sync(flags: .barrier, execute: track.alone("a2"))
        }
        Model.thread("holder") {
          queue.suspend()
          queue.resume()
        }
      }
    }

    @Test(arguments: [2, -1]) func widerLimitAgainstWaitingThread(width: Int) {
      expectComplete(
        Model.explore("a wider limit against a waiting thread", bound: 1) {
          Model.setProcessors(1)
          let queue = DispatchQueue(label: "narrow", attributes: .concurrent)
          queue.setWidth(1)
          let goOn = DispatchSemaphore(value: 0)
          Model.thread("inside") { queue.sync { goOn.wait() } }
          Model.thread("waiting") {
            queue.sync {}
            goOn.signal()
          }
          Model.thread("setter") { queue.setWidth(width) }
          Model.run()
          Self.checkIdle(queue)
        })
    }

    @Test func suspendAgainstReadersOnASerialTarget() {
      expectComplete(
        Model.explore("suspend against readers on a serial target", bound: 2) {
          Model.setProcessors(1)
          let target = DispatchQueue(label: "target")
          let queue = DispatchQueue(label: "concurrent", attributes: .concurrent, target: target)
          let track = Track()
          Model.thread("client") {
            queue.async(execute: track.alone("a1"))
            queue.async(execute: track.alone("a2"))
          }
          Model.thread("holder") {
            queue.suspend()
            queue.resume()
          }
          Model.run()
          // Order holds even if a2 is in the target's list already when a1 is held back.
          track.check(["a1", "a2"])
          Self.checkIdle(target, queue)
        })
    }

    // MARK: - Random

    @Test func aMixUnderRandomSchedules() {
      let result = Model.random("mix", runs: 400, preemptions: 4) {
        let serial = DispatchQueue(label: "serial")
        let shared = DispatchQueue(label: "concurrent", attributes: .concurrent, target: serial)
        let track = Track()
        Model.thread("left") {
          shared.async(execute: track.alone("a1"))
          serial.sync(execute: track.alone("a2"))
          shared.sync(flags: .barrier, execute: track.alone("a3"))
        }
        Model.thread("right") {
          serial.async(execute: track.alone("b1"))
          shared.sync(execute: track.alone("b2"))
        }
        Model.thread("holder") {
          shared.suspend()
          serial.asyncAndWait(execute: track.alone("c1"))
          shared.resume()
        }
        Model.run()
        let ran = track.log.entries.sorted()
        Model.check(ran == ["a1", "a2", "a3", "b1", "b2", "c1"], "only \(ran) ran")
        Self.checkIdle(serial, shared)
      }
      // The result's description contains the seed.
      #expect(result.failure == nil && result.executions == 400, "\(result)")
    }

    // MARK: - Hierarchies

    @Test func queuesShareATarget() {
      expectComplete(
        Model.explore("two queues on one target", bound: 1) {
          let target = DispatchQueue(label: "target")
          let first = DispatchQueue(label: "first", target: target)
          let second = DispatchQueue(label: "second", target: target)
          let track = Track()
          Model.thread("left") { first.async(execute: track.alone("a1")) }
          Model.thread("right") { second.sync(execute: track.alone("b1")) }
          Model.run()
          track.check(["a1"], ["b1"])
          Self.checkIdle(target, first, second)
        })
    }

    /// A queue whose items submit the next ones, beside another item of its target, while it is suspended for a moment.
    private static func turns(never: String? = nil) -> ModelResult {
      Model.explore("turns", bound: 1) {
        ModelFaults.never = never
        let target = DispatchQueue(label: "target")
        let busy = DispatchQueue(label: "busy", target: target)
        let track = Track()
        @Sendable func run(_ left: Int) {
          track.section.alone { track.log.append("busy \(left)") }
          if left > 0 { busy.async { run(left - 1) } }
        }
        Model.thread("left") {
          target.async {
            busy.async { run(5) }
            target.async(execute: track.alone("other"))
          }
        }
        Model.thread("right") {
          busy.suspend()
          busy.resume()
        }
        Model.run()
        track.check(["other"], (0...5).reversed().map { "busy \($0)" })
        Model.check(track.log.entries.last == "busy 0", "ran last: \(track.log.entries)")
        Self.checkIdle(target, busy)
      }
    }

    @Test func theQueuesOfATargetTakeTurns() { expectComplete(Self.turns()) }

    @Test func aTurnWithoutEndIsFound() throws {
      let result = Self.turns(never: "quantum")
      let failure = try #require(result.failure, "\(result)")
      #expect(failure.kind == .check && failure.message.contains("ran last"), "\(failure)")
    }
  }
}
