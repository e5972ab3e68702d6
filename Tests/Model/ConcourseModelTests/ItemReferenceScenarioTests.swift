import Testing

@testable import ConcourseModel

/// The reference to a concurrent queue that its asynchronous items share: the queue ends when the last place is given
/// back, and not before. Releasing it while it is owned or read traps.
extension ModelSuite {
  @Suite struct ItemReferences {
    typealias Track = Queues.Track

    /// A queue to which only some threads have a reference each.
    private struct Owned {
      let queue: Unmanaged<DispatchQueue>

      /// Runs `body` in a thread, which then releases its reference.
      func thread(_ name: String, _ body: @escaping (DispatchQueue) -> Void) {
        let queue = queue.retain()
        Model.thread(name) {
          queue._withUnsafeGuaranteedRef(body)
          queue.release()
        }
      }
    }

    /// Runs such threads: their items run, and then the queue is gone.
    private static func run(
      width: Int? = nil, isApart: Bool = false, target: DispatchQueue? = nil, _ groups: [String]...,
      threads: (Owned, Track) -> Void
    ) {
      if isApart { Model.setTopology("2x1") }
      let queue = Unmanaged.passRetained(
        DispatchQueue(label: "queue", attributes: .concurrent, target: target))
      weak let last = queue.takeUnretainedValue()
      if let width { queue._withUnsafeGuaranteedRef { $0.setWidth(width) } }
      if isApart { queue._withUnsafeGuaranteedRef { $0.readersCollided() } }
      let track = Track()
      threads(Owned(queue: queue), track)
      queue.release()
      Model.run()
      track.check(groups)
      Model.check(last == nil, "the queue is left: \(last.map { "\($0)" } ?? "")")
    }

    // MARK: Who gives the last place back

    private static func twoSubmitters() {
      run(["a1"], ["b1"]) { owned, track in
        for name in ["a1", "b1"] {
          owned.thread(name) { $0.async(execute: track.together(name)) }
        }
      }
    }

    @Test func itemsOfTwoThreads() {
      expectComplete(
        Model.explore("items of two threads share a reference", bound: 1) { Self.twoSubmitters() })
      expectFound(PlantedFault(.noWrite, "QueueState+Readers", "takeItemPlace(limit:shares:)")) {
        Self.twoSubmitters()
      }
    }

    private static func readerAndItem() {
      run(["a1"], ["b1"]) { owned, track in
        owned.thread("client") { $0.async(execute: track.together("a1")) }
        owned.thread("reader") { $0.sync(execute: track.together("b1")) }
      }
    }

    @Test func aReaderMayBeTheLast() {
      expectComplete(Model.explore("a reader and an item", bound: 2) { Self.readerAndItem() })
      expectFound(PlantedFault(.noWrite, "QueueState", "update(_:)")) { Self.readerAndItem() }
    }

    @Test func aBarrierBetweenItems() {
      expectComplete(
        Model.explore("a barrier between items", bound: 1, maxExecutions: 200_000) {
          Self.run(["a1", "a2", "a3"]) { owned, track in
            owned.thread("client") {
              $0.async(execute: track.together("a1"))
              $0.async(flags: .barrier, execute: track.alone("a2"))
              $0.async(execute: track.together("a3"))
            }
          }
        })
    }

    /// An item begins after a barrier that has ended.
    private static func afterBarrier() {
      run(["a1"], ["b1"]) { owned, track in
        owned.thread("client") { $0.async(execute: track.together("a1")) }
        owned.thread("writer") { $0.sync(flags: .barrier, execute: track.alone("b1")) }
      }
    }

    @Test func anItemAfterABarrier() {
      expectComplete(Model.explore("an item against a synchronous barrier", bound: 1) { Self.afterBarrier() })
      expectFound(PlantedFault(.relaxed, "QueueState+Readers", "takeItemPlace(limit:shares:)")) {
        Self.afterBarrier()
      }
    }

    // MARK: An owner among items

    /// On a narrow queue each item that ends hands the queue on, while others end.
    private static func limit() {
      Model.setProcessors(1)
      run(width: 2, ["c1"]) { owned, track in
        let queue = owned.queue
        for name in ["a", "b"] {
          // The place of an item that ends now.
          let node = NodeMagazine.make(.closure({}), level: .default)
          let place = queue._withUnsafeGuaranteedRef { $0.state.takeItemPlace(limit: 2, shares: true)! }
          queue._withUnsafeGuaranteedRef { $0.keep(for: node, by: place.reference) }
          Model.thread(name) {
            _ = node.takeWork()
            NodeMagazine.recycle(node)
            DispatchQueue.giveUpPlace(ofItemOn: queue, isCounted: false)
          }
        }
        owned.thread("client") { $0.async(execute: track.together("c1")) }
      }
    }

    @Test func aLimitOnItems() {
      expectComplete(
        Model.explore("items of a narrow queue end", bound: 2, stale: 0, maxExecutions: 300_000) {
          Self.limit()
        })
    }

    // MARK: Suspension

    /// An item that is held back has no place. A barrier that comes later still comes later, also if its thread owns the
    /// queue, and has seen before that it is not suspended.
    private static func heldBack() {
      Model.setProcessors(1)
      let target = DispatchQueue(label: "target")
      run(target: target, ["a1", "a2"]) { owned, track in
        owned.thread("client") {
          $0.async(execute: track.together("a1"))
          $0.sync(flags: .barrier, execute: track.alone("a2"))
        }
        owned.thread("holder") {
          $0.suspend()
          $0.resume()
        }
      }
      Queues.checkIdle(target)
    }

    @Test func anItemHeldBack() {
      expectComplete(
        Model.explore(
          "an item that is held back, and a barrier", bound: 2, stale: 0, maxExecutions: 300_000
        ) { Self.heldBack() })
    }

    // MARK: Readers counted apart

    @Test func itemsWhileReadersAreApart() {
      expectComplete(
        Model.explore("items while readers are counted apart", bound: 1, stale: 0) {
          Self.run(isApart: true, ["a1"], ["b1"]) { owned, track in
            owned.thread("client") { $0.async(execute: track.together("a1")) }
            owned.thread("closer") {
              $0.endApart()
              $0.async(execute: track.together("b1"))
            }
          }
        })
    }

    @Test func openingAgainstItems() {
      expectComplete(
        Model.explore("indicators are opened against an item", bound: 1, maxExecutions: 200_000) {
          Model.setTopology("2x1")
          Self.run(["a1"], ["b1"]) { owned, track in
            owned.thread("client") { $0.async(execute: track.together("a1")) }
            owned.thread("reader") {
              $0.readersCollided()
              $0.sync(execute: track.together("b1"))
              $0.endApart()
            }
          }
        })
    }
  }
}
