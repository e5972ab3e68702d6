import CConcourse
import Testing

@testable import ConcourseModel

/// The pool's order: no class starves, and the monitor keeps track of entries that one worker steals from another.
extension ModelSuite {
  @Suite struct Pool {
    // MARK: Fairness

    /// Classes whose global queues never run dry, two queues that pass an item back and forth, and a probe: an item of
    /// another class, which one of the others submits. Counts the entries that start before the probe.
    private struct Flood {
      let classes: [DispatchQoS.QoSClass]
      var pair: DispatchQoS.QoSClass = .default
      let probe: DispatchQoS.QoSClass
      let mostBefore: Int

      /// The floods end after this many entries, or when the probe has run.
      private static let length = 32

      /// - Parameter first: The number of entries that have started when the probe is submitted.
      func run(after first: Int) {
        Model.setProcessors(1)
        let log = Model.Log<String>()
        @Sendable func goesOn(_ entry: String) -> Bool {
          log.append(entry)
          if log.entries.count == first { DispatchQueue.global(qos: probe).async { log.append("probe") } }
          return log.entries.count < Self.length && !log.entries.contains("probe")
        }
        @Sendable func feed(_ queue: DispatchQueue) { queue.async { if goesOn("flood") { feed(queue) } } }
        let qos = DispatchQoS(qosClass: pair, relativePriority: 0)
        let queues = [DispatchQueue(label: "left", qos: qos), DispatchQueue(label: "right", qos: qos)]
        @Sendable func hop(_ index: Int) { queues[index].async { if goesOn("hop") { hop(1 - index) } } }
        for qosClass in classes { feed(.global(qos: qosClass)) }
        hop(0)
        Model.run()
        let before = (log.entries.firstIndex(of: "probe") ?? .max) - first
        Model.check(before <= mostBefore, "\(before) entries before the item: \(log.entries)")
      }

      /// One schedule for each position in the worker's rotation, until one fails.
      func explore(_ arm: @escaping () -> Void = {}) -> ModelResult {
        var result = ModelResult(name: "")
        for first in 1...12 {
          result = Model.explore("floods beside \(probe), after \(first)", bound: 0) {
            arm()
            run(after: first)
          }
          if result.failure != nil || !result.isExplored { break }
        }
        return result
      }
    }

    // In the model a root goes first at every third entry, and a root more urgent than the kept queue at every second.
    // At every sixth both apply, and the first rule wins.
    private static let urgent = Flood(classes: [.default], probe: .userInteractive, mostBefore: 2 * 2 - 1)
    private static let between = Flood(
      classes: [.userInteractive, .default], probe: .userInitiated, mostBefore: 3 * 3 - 1)
    private static let last = Flood(
      classes: [.userInteractive, .userInitiated], pair: .userInteractive, probe: .default,
      mostBefore: 3 * 3 - 1)

    @Test func everyClassRuns() {
      for flood in [Self.urgent, Self.between, Self.last] {
        let result = flood.explore()
        expectComplete(result)
      }
    }

    @Test func aClassWithoutTurnsIsFound() throws {
      let result = Self.between.explore { ModelFaults.never = "rootPeriod" }
      let failure = try #require(result.failure, "\(result)")
      #expect(failure.kind == .check && failure.message.contains("before the item"), "\(failure)")
    }

    @Test func aSlotThatAlwaysGoesFirstIsFound() throws {
      let result = Self.urgent.explore { ModelFaults.never = "slotPeriod" }
      let failure = try #require(result.failure, "\(result)")
      #expect(failure.kind == .check && failure.message.contains("before the item"), "\(failure)")
    }

    // MARK: Without queues

    /// A producer puts an entry of a client without queues into a root while the only worker goes to sleep.
    private static func entriesAlone() {
      Model.setProcessors(1)
      let ran = Count()
      _ = Runtime.shared
      Runtime.root(at: .default)._withUnsafeGuaranteedRef { $0.push(testEntry(ran)) }
      Model.thread("producer") {
        Runtime.root(at: .default)._withUnsafeGuaranteedRef { $0.push(testEntry(ran)) }
      }
      Model.run()
      Model.check(ran.value == 2, "\(ran.value) of two entries ran")
    }

    @Test func poolWithoutQueues() {
      expectComplete(Model.explore("entries of a pool without queues", bound: 1) { Self.entriesAlone() })
      expectFound(PlantedFault(.stale, "WorkList", "isEmptyInTotalOrder")) { Self.entriesAlone() }
    }
  }
}

/// An entry that counts its run.
func testEntry(_ ran: Count) -> NodePointer {
  let node = NodeMagazine.make(.test, level: .default)
  node.payload.initializeMemory(as: Unmanaged<Count>.self, to: .passRetained(ran))
  return node
}

@c(concourse_run_test_entry)
func runTestEntry(_ entry: UnsafeMutableRawPointer, _: UnsafeMutableRawPointer?) {
  // SAFETY: only `testEntry` makes entries of this kind.
  let node = entry.assumingMemoryBound(to: WorkNode.self)
  let ran = node.payload.load(as: Unmanaged<Count>.self)
  NodeMagazine.recycle(node)
  ran._withUnsafeGuaranteedRef { $0.value += 1 }
  ran.release()
}
