import Testing

@testable import ConcourseModel

/// Threads that wait for what lies in a lowered band.
extension ModelSuite {
  @Suite struct Boosting {
    /// Two workers, the monitor and two threads are more than a search of all interleavings can visit.
    private func sample(
      _ name: String, location: SourceLocation = #_sourceLocation, _ scenario: @escaping () -> Void
    ) {
      let result = Model.random(name, runs: 400, preemptions: 3, scenario)
      // The seed is in the description.
      #expect(result.failure == nil && result.executions == 400, "\(result)", sourceLocation: location)
    }

    /// A parked worker in either band, so that no one waits for the monitor to make it. If the background band is to rest,
    /// no worker takes anything from its root any more, as if so many were busy.
    private static func begin(backgroundRests: Bool) {
      Model.setProcessors(1)
      let band = Runtime.shared.bands[2]
      DispatchQueue.global().async {}
      DispatchQueue.global(qos: .background).async {}
      Model.run()
      if backgroundRests { band.counters.apply(.init(active: 100)) }
    }

    /// Work of a band that rested. The monitor may hold the band back, in favour of what ran meanwhile: its next looks let
    /// the band go.
    private static func endRest() {
      let band = Runtime.shared.bands[2]
      band.counters.apply(.init(active: -100))
      band.noteWork()
      Model.run()
      for _ in 0..<4 {
        Model.advance(nanoseconds: 1_000_000)
        Model.run()
      }
    }

    private static func checkNoBoost() {
      for level in [QoSLevel.background, .utility] {
        let root = Runtime.root(at: level).takeUnretainedValue()
        Model.check(root.boosted.isEmpty, "entries are still boosted")
      }
    }

    /// The item runs before the thread, or after it, and then the background band would have to run it.
    @Test func syncBehindAnItem() {
      for rests in [true, false] {
        sample("sync behind an item of a background queue") {
          Self.begin(backgroundRests: rests)
          let queue = DispatchQueue(label: "lowered", qos: .background)
          let track = Queues.Track()
          Model.thread("producer") { queue.async(execute: track.alone("a")) }
          Model.thread("waiter") { queue.sync(execute: track.alone("b")) }
          Model.run()
          if rests { Self.endRest() }
          track.check(["a"], ["b"])
          Queues.checkIdle(queue)
        }
      }
    }

    @Test func syncThroughALoweredTarget() {
      sample("sync on a queue with a background target") {
        Self.begin(backgroundRests: false)
        let target = DispatchQueue(label: "target", qos: .background)
        let queue = DispatchQueue(label: "nested", target: target)
        let track = Queues.Track()
        Model.thread("producer") {
          target.async(execute: track.alone("a"))
          queue.async(execute: track.alone("b"))
        }
        Model.thread("waiter") { queue.sync(execute: track.alone("c")) }
        Model.run()
        track.check(["a", "b"], ["c"])
        Queues.checkIdle(queue, target)
      }
    }

    /// A waiting thread looks at entries that another thread pushes.
    @Test func looksAtEntries() {
      expectComplete(
        Model.explore("a look at the entries of a lowered band", bound: 1) {
          Model.setProcessors(1)
          _ = Runtime.shared
          Model.thread("producer") { DispatchQueue.global(qos: .background).async {} }
          Model.thread("waiter") { Runtime.boost { $0.pointee.level == .default } }
          Model.run()
        })
    }

    /// Only workers of the default band come, and one of them may be about to park.
    @Test func groupInARestingBand() {
      sample("wait for a group of background items") {
        Self.begin(backgroundRests: true)
        let group = DispatchGroup()
        let track = Queues.Track()
        DispatchQueue.global(qos: .background).async(execute: track.together("a"))
        DispatchQueue.global(qos: .background).async(group: group, execute: track.together("b"))
        Model.thread("other") { DispatchQueue.global().async(execute: track.together("c")) }
        Model.thread("waiter") { group.wait() }
        Model.run()
        track.check(["a", "b"], ["c"])
        Self.checkNoBoost()
      }
    }

    /// The default band has no thread and gets none: the background worker serves what a thread waits for.
    @Test func syncWithoutAThread() {
      sample("sync on a background queue, no further thread") {
        Model.setProcessors(1)
        DispatchQueue.global(qos: .background).async {}
        Model.run()
        ModelFaults.refusesThreads = true
        let queue = DispatchQueue(label: "lowered", qos: .background)
        let track = Queues.Track()
        Model.thread("producer") { queue.async(execute: track.alone("a")) }
        Model.thread("waiter") { queue.sync(execute: track.alone("b")) }
        Model.run()
        track.check(["a"], ["b"])
      }
    }

    /// The only worker of the default band waits for the background queue, and the system refuses another.
    @Test func syncFromTheOnlyWorker() {
      sample("sync from the default band's only worker, no further thread") {
        Self.begin(backgroundRests: false)
        ModelFaults.refusesThreads = true
        let queue = DispatchQueue(label: "lowered", qos: .background)
        let track = Queues.Track()
        Model.thread("producer") {
          queue.async(execute: track.alone("a"))
          queue.async(execute: track.alone("b"))
        }
        DispatchQueue.global().async { queue.sync(execute: track.alone("c")) }
        Model.run()
        track.check(["a", "b"], ["c"])
        Queues.checkIdle(queue)
      }
    }

    /// The reader that ends last hands the queue on at the class of the waiting thread.
    @Test func barrierBehindReaders() {
      sample("barrier sync behind items of a background queue") {
        Self.begin(backgroundRests: true)
        let queue = DispatchQueue(label: "lowered", qos: .background, attributes: .concurrent)
        let track = Queues.Track()
        queue.async(execute: track.together("a"))
        Model.thread("producer") { queue.async(flags: .barrier, execute: track.alone("b")) }
        Model.thread("waiter") { queue.sync(flags: .barrier, execute: track.alone("c")) }
        Model.run()
        Self.endRest()
        track.check(["a"], ["b"], ["c"])
        Queues.checkIdle(queue)
      }
    }

    /// The first thread gives the queue up while the second waits behind an item.
    @Test func twoSyncs() {
      sample("two sync on a background queue, with items between them") {
        Self.begin(backgroundRests: true)
        let queue = DispatchQueue(label: "lowered", qos: .background)
        let track = Queues.Track()
        Model.thread("first") {
          queue.async(execute: track.alone("a"))
          queue.sync(execute: track.alone("b"))
        }
        Model.thread("second") {
          queue.async(execute: track.alone("c"))
          queue.sync(execute: track.alone("d"))
        }
        Model.run()
        track.check(["a", "b"], ["c", "d"])
        Queues.checkIdle(queue)
      }
    }

    /// Workers of both bands take the same entries.
    @Test func groupInBothBands() {
      sample("two wait for a group of background items") {
        Self.begin(backgroundRests: false)
        let group = DispatchGroup()
        let track = Queues.Track()
        Model.thread("waiter") {
          DispatchQueue.global(qos: .background).async(group: group, execute: track.together("a"))
          DispatchQueue.global(qos: .background).async(group: group, execute: track.together("b"))
          group.wait()
        }
        DispatchQueue.global().async { group.wait() }
        Model.run()
        track.check(["a"], ["b"])
        Self.checkNoBoost()
      }
    }
  }
}
