import Testing

@testable import ConcourseModel

/// Queues whose target changes while they are active, including two concurrent changes.
extension ModelSuite {
  @Suite struct Retargets {
    private static func makeQueue(_ label: String) -> DispatchQueue {
      DispatchQueue(
        kind: .serial, label: QueueName(label), qos: .unspecified, attributes: [], target: nil,
        mayChangeTarget: true)
    }

    private static let trap = "lead back to it"

    /// Every execution must end in the trap for cycles.
    private func expectTrap(_ result: ModelResult, location: SourceLocation = #_sourceLocation) {
      let isWhole = result.isExplored || result.seed != nil
      #expect(result.failure == nil && isWhole, "\(result)", sourceLocation: location)
    }

    @Test func idleQueuesTargetEachOther() {
      expectTrap(
        Model.explore("idle queues target each other", bound: 2, reduce: [], expectedTrap: Self.trap) {
          let (one, other) = (Self.makeQueue("one"), Self.makeQueue("other"))
          Model.thread("left") { one.setTarget(queue: other) }
          Model.thread("right") { other.setTarget(queue: one) }
          Model.run()
        })
    }

    @Test func busyQueuesTargetEachOther() {
      expectTrap(
        Model.random("busy queues target each other", runs: 300, expectedTrap: Self.trap) {
          let queues = [Self.makeQueue("one"), Self.makeQueue("other")]
          for (queue, target) in zip(queues, queues.reversed()) {
            Model.thread(queue.label) {
              queue.async {}
              queue.setTarget(queue: target)
            }
          }
          Model.run()
        })
    }

    /// A change that waits in a queue's list counts as made: the next caller traps, not a worker later.
    @Test func pendingChangeCounts() {
      expectTrap(
        Model.explore("a change that waits", bound: 1, reduce: [], expectedTrap: Self.trap) {
          let (held, other) = (Self.makeQueue("held"), Self.makeQueue("other"))
          Model.thread("client") {
            held.suspend()
            held.async {}
            held.setTarget(queue: other)
            other.setTarget(queue: held)
          }
          Model.run()
        })
    }

    @Test func threeQueuesInARing() {
      expectTrap(
        Model.explore("three queues in a ring", bound: 1, reduce: [], expectedTrap: Self.trap) {
          let queues = ["one", "two", "three"].map(Self.makeQueue)
          for index in 0..<3 {
            Model.thread(queues[index].label) { queues[index].setTarget(queue: queues[(index + 1) % 3]) }
          }
          Model.run()
        })
    }

    @Test func changesInALineAgainstItems() {
      let result = Model.random("changes in a line against items", runs: 300) {
        let queues = ["one", "two", "three"].map(Self.makeQueue)
        let log = Model.Log<String>()
        for (index, name) in ["a1", "b1"].enumerated() {
          Model.thread(queues[index].label) {
            queues[index].async(execute: { log.append(name) })
            queues[index].setTarget(queue: queues[2])
            queues[index].setTarget(queue: queues[index + 1])
          }
        }
        Model.run()
        Model.check(log.entries.sorted() == ["a1", "b1"], "only \(log.entries) ran")
        for index in 0..<2 {
          Model.check(queues[index].targetQueue === queues[index + 1], "not the last target")
        }
        Queues.checkIdle(queues[0], queues[1], queues[2])
      }
      expectNoFailure(result)
    }
  }
}
