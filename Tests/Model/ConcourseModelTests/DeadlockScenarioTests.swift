import Testing

@testable import ConcourseModel

/// Cycles of waits: each is reported in every interleaving, and what is none is never reported.
extension ModelSuite {
  @Suite struct Deadlocks {
    private func expectResult(_ result: ModelResult, location: SourceLocation = #_sourceLocation) {
      let isWhole = result.isExplored || result.seed != nil
      #expect(result.failure == nil && isWhole, "\(result)", sourceLocation: location)
    }

    private static func searchAtOnce() { ProcessQueues.shared.blockedThreads.patience = 0 }

    private static let two = "deadlock: 2 threads wait for one another"

    /// Two places on the way to a cycle: each thread goes on when both have come.
    private struct Meeting {
      let come = [DispatchSemaphore(value: 0), DispatchSemaphore(value: 0)]

      func meet(_ index: Int, _ goOn: () -> Void) {
        come[1 - index].signal()
        come[index].wait()
        goOn()
      }
    }

    @Test func twoQueues() {
      expectResult(
        Model.explore("two queues wait for each other", bound: 2, freshBound: 3, expectedTrap: Self.two) {
          Self.searchAtOnce()
          let queues = [DispatchQueue(label: "A"), DispatchQueue(label: "B")]
          let meeting = Meeting()
          for index in 0..<2 {
            Model.thread(queues[index].label) {
              queues[index].sync { meeting.meet(index) { queues[1 - index].sync {} } }
            }
          }
          Model.run()
        })
    }

    @Test func barrierAndReader() {
      expectResult(
        Model.explore("a barrier and a reader", bound: 1, freshBound: 3, expectedTrap: Self.two) {
          Self.searchAtOnce()
          let shared = DispatchQueue(label: "shared", attributes: .concurrent)
          let serial = DispatchQueue(label: "serial")
          let meeting = Meeting()
          Model.thread("reader") { shared.sync { meeting.meet(0) { serial.sync {} } } }
          Model.thread("writer") {
            serial.sync {
              meeting.meet(1) {
                shared.async(flags: .barrier) {}
                shared.sync {}
              }
            }
          }
          Model.run()
        })
    }

    @Test func groupAndQueue() {
      expectResult(
        Model.explore("an item of a group and its waiter", bound: 1, freshBound: 2, expectedTrap: Self.two) {
          Self.searchAtOnce()
          let queue = DispatchQueue(label: "queue")
          let group = DispatchGroup()
          let meeting = Meeting()
          Model.thread("holder") { queue.sync { meeting.meet(0) { group.wait() } } }
          DispatchQueue.global().async(group: group) { meeting.meet(1) { queue.sync {} } }
          Model.run()
        })
    }

    /// The first push onto `child` may be between its exchange and its note when the other thread searches.
    @Test func pushIsNotNotedYet() {
      expectResult(
        Model.explore(
          "a push that is not noted yet", bound: 1, freshBound: 3, allowTime: true,
          expectedTrap: "deadlock: a thread waits for itself"
        ) {
          Self.searchAtOnce()
          let target = DispatchQueue(label: "target")
          let child = DispatchQueue(label: "child", target: target)
          let pushed = DispatchSemaphore(value: 0)
          Model.thread("producer") {
            pushed.wait()
            child.async {}
          }
          Model.thread("holder") {
            target.sync {
              pushed.signal()
              while child.list.isEmpty { Processor.pause() }
              child.sync {}
            }
          }
          Model.run()
        })
    }

    /// The cycle is closed by a thread that goes on: it gives `target` to one thread that sleeps, and then leaves `child`,
    /// for which another one sleeps, to it.
    private static func handedOn() {
      searchAtOnce()
      let target = DispatchQueue(label: "target")
      let child = DispatchQueue(label: "child", target: target)
      let other = DispatchQueue(label: "other")
      let goOn = (0..<2).map { _ in DispatchSemaphore(value: 0) }
      Model.background("goes on") {
        child.sync {
          child.async {}
          goOn[0].wait()
        }
      }
      Model.background("on child") {
        other.sync {
          goOn[1].wait()
          child.sync {}
        }
      }
      Model.run()
      Model.background("on target") { target.sync { other.sync {} } }
      Model.run()
      for semaphore in goOn { Model.thread("starts") { semaphore.signal() } }
      Model.run()
    }

    @Test func closedByAThreadThatGoesOn() {
      expectResult(
        Model.explore("closed by a thread that goes on", bound: 1, expectedTrap: Self.two) { Self.handedOn() }
      )
    }

    /// The worker runs the body of a thread that waits in `asyncAndWait`, then an item that waits for what this thread
    /// holds. The thread has been signalled, but may not have run yet.
    private static func signalledThread() {
      searchAtOnce()
      let (held, busy) = (DispatchQueue(label: "held"), DispatchQueue(label: "busy"))
      let log = Model.Log<Int>()
      Model.thread("client") { busy.async { log.append(0) } }
      Model.thread("waiter") {
        held.sync { busy.asyncAndWait { busy.async { held.sync { log.append(1) } } } }
      }
      Model.run()
      Model.check(log.entries.count == 2, "only \(log.entries) ran")
    }

    @Test func signalledThreadIsNoDeadlock() {
      expectComplete(Model.explore("a signalled thread", bound: 1) { Self.signalledThread() })
    }

    /// A barrier's note comes when an owner has run the barrier already, and another push is not noted yet: the reader
    /// that waits behind that push does not wait for the reader that runs.
    @Test func lateNoteIsNoBarrier() {
      expectResult(
        Model.random("a late note", runs: 1000, allowTime: true) {
          Self.searchAtOnce()
          let shared = DispatchQueue(label: "shared", attributes: .concurrent)
          let serial = DispatchQueue(label: "serial")
          let log = Model.Log<Int>()
          let pushed = DispatchSemaphore(value: 0)
          Model.thread("reader") {
            shared.sync {
              _ = shared.state.noteWork(.default, exclusive: true)
              _ = shared.list.push(NodeMagazine.make(.closure({}), level: .default))
              pushed.signal()
              while ProcessQueues.shared.blockedThreads.registered < 1 && log.entries.isEmpty {
                Processor.pause()
              }
              serial.sync {}
              shared.carryOut(shared.state.noteWork(.default, exclusive: false))
            }
          }
          Model.thread("behind") {
            pushed.wait()
            serial.sync { shared.sync { log.append(0) } }
          }
          Model.run()
          Model.check(log.entries.count == 1, "only \(log.entries) ran")
        })
    }

    /// Waits that another event ends.
    @Test func resumedQueueIsNoDeadlock() {
      expectComplete(
        Model.explore("a suspended queue", bound: 1, stale: 0) {
          Self.searchAtOnce()
          let (a, b) = (DispatchQueue(label: "A"), DispatchQueue(label: "B"))
          let log = Model.Log<Int>()
          b.suspend()
          Model.thread("waiter") { a.sync { b.sync { log.append(0) } } }
          Model.thread("other") { a.sync { log.append(1) } }
          Model.thread("resumer") { b.resume() }
          Model.run()
          Model.check(log.entries.count == 2, "only \(log.entries) ran")
        })
    }
  }
}
