import Testing

@testable import ConcourseModel

/// Readers of one concurrent queue that are counted apart from its state word.
extension ModelSuite {
  @Suite struct Readers {
    typealias Track = Queues.Track

    /// A concurrent queue on a machine with two shards; `isApart`: whose readers are counted apart from the start.
    private static func makeQueue(isApart: Bool = true) -> DispatchQueue {
      Model.setTopology("2x1")
      let queue = DispatchQueue(label: "queue", attributes: .concurrent)
      if isApart {
        queue.readersCollided()
        Model.check(queue.state.snapshot.isApart, "not apart: \(queue.state.snapshot)")
      }
      return queue
    }

    /// Runs threads that use such a queue: their items run, each group in its order, and then the queue is idle.
    private static func run(
      isApart: Bool = true, _ groups: [String]..., threads: (DispatchQueue, Track) -> Void
    ) {
      let (queue, track) = (makeQueue(isApart: isApart), Track())
      threads(queue, track)
      Model.run()
      track.check(groups)
      queue.endApart()
      Queues.checkIdle(queue)
    }

    // MARK: Barriers

    private static func barrier() {
      run(["a1", "a2"], ["b1"]) { queue, track in
        Model.thread("reader") {
          queue.sync(execute: track.together("a1"))
          queue.sync(execute: track.together("a2"))
        }
        Model.thread("writer") { queue.sync(flags: .barrier, execute: track.alone("b1")) }
      }
    }

    @Test func barrierAgainstReadersApart() {
      expectComplete(Model.explore("a barrier against readers apart", bound: 2) { Self.barrier() })
      expectFound(
        PlantedFault(.noWrite, "ReaderIndicators", "take(_:)"),
        PlantedFault(.noWrite, "ReaderIndicators", "giveBack(_:)"),
        PlantedFault(.noWrite, "ReaderIndicators", "close()"),
        PlantedFault(.relaxed, "ReaderIndicators", "close()"), bound: 2
      ) { Self.barrier() }
    }

    /// The same thread reads after a barrier that it has submitted: never before that.
    private static func ownBarrier() {
      run(["a1", "a2"], ["b1"]) { queue, track in
        Model.thread("client") {
          queue.async(flags: .barrier, execute: track.alone("a1"))
          queue.sync(execute: track.together("a2"))
        }
        Model.thread("reader") { queue.sync(execute: track.together("b1")) }
      }
    }

    @Test func aReaderComesAfterItsOwnBarrier() {
      expectComplete(
        Model.explore("a barrier, then a reader", bound: 1, maxExecutions: 200_000) { Self.ownBarrier() })
    }

    @Test func twoBarriers() {
      expectComplete(
        Model.explore("two barriers close the indicators", bound: 1) {
          Self.run(["a1"], ["b1"], ["c1"]) { queue, track in
            Model.thread("reader") { queue.sync(execute: track.together("a1")) }
            Model.thread("writer") { queue.sync(flags: .barrier, execute: track.alone("b1")) }
            Model.thread("other writer") { queue.sync(flags: .barrier, execute: track.alone("c1")) }
          }
        })
    }

    /// Places are given back by other threads than those that took them.
    @Test func itemsAgainstBarrier() {
      expectComplete(
        Model.explore("items against a barrier and readers apart", bound: 1) {
          Self.run(["a1"], ["b1"]) { queue, track in
            Model.thread("client") { queue.async(execute: track.together("a1")) }
            Model.thread("writer") { queue.sync(flags: .barrier, execute: track.alone("b1")) }
          }
        })
    }

    // MARK: Items with references of their own

    /// An item takes its place by an addition, and returns it if a barrier was first.
    private static func additionAgainstBarrier() {
      run(isApart: false, ["a1"], ["b1"]) { queue, track in
        Model.thread("client") { queue.async(execute: track.together("a1")) }
        Model.thread("writer") { queue.async(flags: .barrier, execute: track.alone("b1")) }
      }
    }

    @Test func anItemAgainstABarrier() {
      expectComplete(
        Model.explore("an item's addition against a barrier", bound: 1, maxExecutions: 200_000) {
          Self.additionAgainstBarrier()
        })
      expectFound(
        PlantedFault(.noWrite, "QueueState+Readers", "addItemPlaceIfFree()"),
        PlantedFault(.noWrite, "QueueState+Readers", "releaseCountedPlace(_:)"),
        PlantedFault(.relaxed, "QueueState+Readers", "releaseCountedPlace(_:)"), bound: 1
      ) { Self.additionAgainstBarrier() }
    }

    /// The barrier waits for no reader but the place that the item returns.
    private static func additionAgainstBarrierSync() {
      run(isApart: false, ["a1"], ["b1", "b2"]) { queue, track in
        Model.thread("client") { queue.async(execute: track.together("a1")) }
        Model.thread("writer") {
          queue.sync(flags: .barrier, execute: track.alone("b1"))
          queue.sync(flags: .barrier, execute: track.alone("b2"))
        }
      }
    }

    @Test func anItemAgainstASynchronousBarrier() {
      expectComplete(
        Model.explore("an item's addition against synchronous barriers", bound: 2, maxExecutions: 300_000) {
          Self.additionAgainstBarrierSync()
        })
      expectFound(PlantedFault(.relaxed, "QueueState+Readers", "addItemPlaceIfFree()"), bound: 1) {
        Self.additionAgainstBarrierSync()
      }
    }

    @Test func anItemAgainstASuspension() {
      expectComplete(
        Model.explore(
          "an item's addition against a suspension", bound: 1, stale: 0, maxExecutions: 300_000
        ) {
          Self.run(isApart: false, ["a1"], ["b1"]) { queue, track in
            Model.thread("client") { queue.async(execute: track.together("a1")) }
            Model.thread("holder") {
              queue.suspend()
              queue.async(flags: .barrier, execute: track.alone("b1"))
              queue.resume()
            }
          }
        })
    }

    // MARK: Opening

    /// Readers meet in the word, and open the indicators, while a barrier comes and other readers read.
    @Test func openingAgainstBarrier() {
      expectComplete(
        Model.explore("indicators are opened against a barrier", bound: 1) {
          Self.run(isApart: false, ["a1"], ["b1"], ["c1"]) { queue, track in
            Model.thread("reader") {
              queue.readersCollided()
              queue.sync(execute: track.together("a1"))
            }
            Model.thread("writer") { queue.sync(flags: .barrier, execute: track.alone("b1")) }
            Model.thread("other reader") { queue.sync(execute: track.together("c1")) }
          }
        })
    }

    /// The indicators are closed and opened again while a reader is about to take a place.
    private static func reopening() {
      run(["a1"], ["b1", "b2"]) { queue, track in
        Model.thread("reader") { queue.sync(execute: track.together("a1")) }
        Model.thread("writer") {
          queue.sync(flags: .barrier, execute: track.alone("b1"))
          queue.readersCollided()
          queue.sync(flags: .barrier, execute: track.alone("b2"))
        }
      }
    }

    @Test func reopeningAgainstReader() {
      expectComplete(Model.explore("indicators are opened again", bound: 2) { Self.reopening() })
      expectFound(PlantedFault(.relaxed, "ReaderIndicators", "open()"), bound: 2) { Self.reopening() }
    }

    @Test func twoReadersOpen() {
      expectComplete(
        Model.explore("two readers open the indicators", bound: 2) {
          Self.run(isApart: false, ["a1"], ["b1"]) { queue, track in
            for name in ["a1", "b1"] {
              Model.thread(name) {
                queue.readersCollided()
                queue.sync(execute: track.together(name))
              }
            }
          }
        })
    }

    // MARK: Other ends

    @Test(arguments: [1, -1]) func aLimitAgainstReadersApart(width: Int) {
      expectComplete(
        Model.explore("a limit against readers apart", bound: 1) {
          Self.run(["a1"], ["b1"]) { queue, track in
            for name in ["a1", "b1"] {
              Model.thread(name) { queue.sync(execute: track.together(name)) }
            }
            Model.thread("setter") { queue.setWidth(width) }
          }
        })
    }

    @Test func suspensionOfReadersApart() {
      expectComplete(
        Model.explore("a suspension of readers apart", bound: 1, maxExecutions: 200_000) {
          Self.run(["a1"], ["b1"]) { queue, track in
            Model.thread("reader") { queue.sync(execute: track.together("a1")) }
            Model.thread("holder") {
              queue.suspend()
              queue.resume()
            }
            Model.thread("writer") { queue.sync(flags: .barrier, execute: track.alone("b1")) }
          }
        })
    }

    /// A thread that reads, and reads again, takes its second place in the word, behind a barrier that waits for it.
    @Test func aReaderReadsAgain() {
      expectComplete(
        Model.explore("a reader apart reads again", bound: 2) {
          Self.run(["a1"], ["b1"]) { queue, track in
            Model.thread("reader") { queue.sync { queue.sync(execute: track.together("a1")) } }
            Model.thread("writer") { queue.sync(flags: .barrier, execute: track.alone("b1")) }
          }
        })
    }

    /// The last reference is released while the indicators are open: that is no client's bug.
    @Test func theEndOfAQueueApart() {
      expectComplete(
        Model.explore("a queue apart ends", bound: 1) {
          var queue: DispatchQueue? = Self.makeQueue()
          Model.thread("reader") { [queue] in queue!.sync {} }
          queue = nil
          Model.run()
        })
    }
  }
}
