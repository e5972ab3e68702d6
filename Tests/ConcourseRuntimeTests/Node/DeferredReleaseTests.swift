import Testing

@testable import ConcourseRuntime

extension Engine {
  /// Trap 14: a recursive release would be as deep as the chain is long. Run on a thread with an ordinary stack.
  @Suite("DeferredRelease")
  struct DeferredReleaseTests {
    @Test("trap 14: a chain of 100,000 work items that hold one another is released")
    func closures() {
      let released = Tally()
      let ended = onThreads(1) { _ in
        var item: DispatchWorkItem?
        for _ in 0..<100_000 {
          let witness = Witness(released)
          let next = item
          item = DispatchWorkItem { _ = (next, witness) }
        }
        item = nil
      }
      #expect(ended)
      #expect(released.value == 100_000)
    }

    @Test("trap 14: a chain of items that hold one another through pending notifications is released")
    func notifications() {
      let released = Tally()
      let done = DispatchSemaphore(value: 0)
      let queue = DispatchQueue(label: "notified")
      let ended = onThreads(1) { _ in
        var item = DispatchWorkItem { done.signal() }
        for _ in 0..<100_000 {
          let witness = Witness(released)
          let before = DispatchWorkItem { _ = witness }
          before.notify(queue: queue, execute: item)
          item = before
        }
      }
      // The first is released, and each of the others runs as the notification of the one before it.
      #expect(ended && comes(done))
      #expect(released.value == 100_000)
    }

    @Test("groups that hold one another through pending notifications are released")
    func groups() {
      let released = Tally()
      let ended = onThreads(1) { _ in
        let queue = DispatchQueue(label: "never")
        var group: DispatchGroup?
        for _ in 0..<100_000 {
          let witness = Witness(released)
          let next = group
          let entered = DispatchGroup()
          entered.enter()
          entered.notify(queue: queue) { _ = (next, witness) }
          group = entered
        }
        group = nil
      }
      #expect(ended)
      #expect(released.value == 100_000)
    }

    @Test("a chain that alternates between items and notifications is released after the item has run")
    func afterRunning() {
      let released = Tally()
      let done = DispatchSemaphore(value: 0)
      let queue = DispatchQueue(label: "runner")
      queue.async {
        var item = DispatchWorkItem {}
        for number in 0..<20_000 {
          let witness = Witness(released)
          let next = item
          item = DispatchWorkItem { _ = (next, witness) }
          if number % 2 == 0 {
            let outer = DispatchWorkItem { _ = witness }
            outer.notify(queue: queue, execute: item)
            item = outer
          }
        }
        let last = item
        last.perform()
        queue.async { done.signal() }
      }
      #expect(comes(done))
      // Each item that is released submits its notification, whose release follows.
      #expect(awaitValue { released.value == 20_000 })
    }

    @Test("S62 an item's captures are released with its last reference, on the thread that drops it")
    func atOnce() {
      let released = Tally()
      let witness = Witness(released)
      var item: DispatchWorkItem? = DispatchWorkItem { [witness] in _ = witness }
      _ = consume witness
      item?.perform()
      #expect(released.value == 0)
      item = nil
      #expect(released.value == 1)
    }

    @Test("a chain of 100,000 queues by target is released without overflowing the stack")
    func queues() {
      var last = DispatchQueue(label: "test.chain")
      weak let first = last
      for _ in 0..<100_000 { last = DispatchQueue(label: "test.chain", target: last) }
      #expect(first != nil)
      last = DispatchQueue(label: "test.chain.end")
      #expect(first == nil)
    }
  }
}

/// Counts its deinit.
private final class Witness: Sendable {
  private let released: Tally

  init(_ released: Tally) { self.released = released }

  deinit { released.add() }
}
