import Testing

@testable import ConcourseModel

extension ModelSuite {
  @Suite struct Workloops {
    @Test func classesAgainstEachOther() {
      expectNoFailure(
        Model.random("classes against each other", runs: 300) {
          let workloop = DispatchWorkloop(label: "workloop")
          let track = Queues.Track()
          Model.thread("low") {
            workloop.async(qos: .default, execute: track.alone("a1"))
            workloop.async(qos: .default, execute: track.alone("a2"))
          }
          Model.thread("high") {
            workloop.async(qos: .userInitiated, execute: track.alone("b1"))
          }
          Model.run()
          track.check(["a1", "a2"], ["b1"])
          Queues.checkIdle(workloop)
        })
    }

    @Test func asyncAndWaitAgainstItems() {
      expectNoFailure(
        Model.random("asyncAndWait against items of a workloop", runs: 300) {
          let workloop = DispatchWorkloop(label: "workloop")
          let track = Queues.Track()
          Model.thread("left") {
            workloop.async(qos: .userInitiated, execute: track.alone("a1"))
            workloop.asyncAndWait(execute: track.alone("a2"))
          }
          Model.thread("right") { workloop.asyncAndWait(execute: track.alone("b1")) }
          Model.run()
          track.check(["a1"], ["a2"], ["b1"])
          Queues.checkIdle(workloop)
        })
    }

    @Test func suspensionAgainstItems() {
      expectNoFailure(
        Model.random("a suspended workloop", runs: 300) {
          let workloop = DispatchWorkloop(label: "workloop")
          let track = Queues.Track()
          Model.thread("client") {
            workloop.async(execute: track.alone("a1"))
            workloop.async(qos: .userInitiated, execute: track.alone("b1"))
          }
          Model.thread("holder") {
            workloop.suspend()
            workloop.resume()
          }
          Model.run()
          track.check(["a1"], ["b1"])
          Queues.checkIdle(workloop)
        })
    }

    /// A workloop that is enqueued at a low class is enqueued again at a higher one.
    @Test func higherClassRaisesTheWorkloop() {
      expectNoFailure(
        Model.explore("a higher class lifts the workloop", bound: 1) {
          Model.setProcessors(1)
          let workloop = DispatchWorkloop(label: "workloop")
          let track = Queues.Track()
          Model.thread("client") {
            // The worker runs this item, so everything else waits.
            DispatchQueue.global().async {
              workloop.async(qos: .default, execute: track.alone("low"))
              // Displaces the workloop from the worker's slot.
              DispatchQueue(label: "other").async {}
              DispatchQueue.global().async(execute: track.alone("between"))
              workloop.async(qos: .userInteractive, execute: track.alone("high"))
            }
          }
          Model.run()
          let order = track.log.entries
          Model.check(
            order.firstIndex(of: "high")! < order.firstIndex(of: "between")!, "ran in the order \(order)")
          Queues.checkIdle(workloop)
        })
    }

    /// A workloop that never runs dry yields its worker after every 256 items, not only after the first 256.
    @Test func itemsThatFollowEachOtherYield() {
      let result = Model.roundRobin("a workloop that feeds itself", stepLimit: 200_000) {
        Model.setProcessors(1)
        let workloop = DispatchWorkloop(label: "workloop")
        let log = Model.Log<String>()
        @Sendable func item() {
          log.append("item")
          // No other entry was waiting when the first 256 items had run.
          if log.entries.count == 300 { DispatchQueue.global().async { log.append("other") } }
          if log.entries.last == "item" && log.entries.count < 1500 { workloop.async(execute: item) }
        }
        Model.thread("client") { workloop.async(execute: item) }
        Model.run()
        let before = log.entries.firstIndex(of: "other")!
        Model.check(before <= 512, "the other item ran after \(before) of the workloop")
        Queues.checkIdle(workloop)
      }
      expectNoFailure(result)
    }

    /// Producers that outrun their workloop do not stop it from running items.
    @Test func floodDoesNotDelayItems() {
      let result = Model.roundRobin("a flood") {
        let workloop = DispatchWorkloop(label: "workloop")
        let log = Model.Log<String>()
        for name in ["one", "two", "three"] {
          Model.thread(name) { while log.entries.isEmpty { workloop.async { log.append("item") } } }
        }
        Model.run()
        Queues.checkIdle(workloop)
      }
      expectNoFailure(result)
    }
  }
}
