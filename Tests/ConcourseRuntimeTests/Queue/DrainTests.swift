import Testing

@testable import ConcourseRuntime

extension Engine {
  @Suite("A queue that is never empty")
  struct DrainTests {
    /// Submits to `queue` an item that submits itself again until `isDone`.
    private static func keepBusy(_ queue: DispatchQueue, until isDone: Shared<Bool>) {
      queue.async { if !isDone.value { keepBusy(queue, until: isDone) } }
    }

    /// Whether `others`, called once the queue is busy, leads to a signal.
    private func staysFair(
      _ queue: DispatchQueue, beside others: (@escaping @Sendable () -> Void) -> Void
    ) -> Bool {
      let (isDone, began, ran) = (Shared(false), DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
      queue.async { began.signal() }
      Self.keepBusy(queue, until: isDone)
      #expect(comes(began))
      others { ran.signal() }
      defer {
        isDone.change { $0 = true }
        queue.sync {}
      }
      return comes(ran)
    }

    private enum Hierarchy: CaseIterable { case serial, workloop, three, four }

    @Test("items of its target run, whatever is between", arguments: Hierarchy.allCases)
    private func target(_ hierarchy: Hierarchy) {
      let top = hierarchy == .workloop ? DispatchWorkloop(label: "top") : DispatchQueue(label: "top")
      var lowest = DispatchQueue(label: "busy", target: top)
      for _ in 0..<(hierarchy == .three ? 1 : hierarchy == .four ? 2 : 0) {
        lowest = DispatchQueue(label: "busy", target: lowest)
      }
      #expect(staysFair(lowest) { signal in top.async { signal() } })
      #expect(staysFair(lowest) { signal in DispatchQueue(label: "beside", target: top).async { signal() } })
      let caller = DispatchQueue(label: "caller")
      #expect(staysFair(lowest) { signal in caller.async { top.asyncAndWait { signal() } } })
    }

    @Test("a barrier of its concurrent target runs")
    func barrier() {
      let top = DispatchQueue(label: "top", attributes: .concurrent)
      let busy = DispatchQueue(label: "busy", target: top)
      #expect(staysFair(busy) { signal in top.async(flags: .barrier) { signal() } })
    }

    @Test("a queue with long items does not fill another one faster than that gets turns")
    func shares() {
      let top = DispatchQueue(label: "top")
      let filling = DispatchQueue(label: "filling", target: top)
      let filled = DispatchQueue(label: "filled", target: top)
      let (group, waiting, most) = (DispatchGroup(), Tally(), Shared(0))
      let (batches, size) = (60, 100)
      for _ in 0..<batches {
        filling.async(group: group) {
          for _ in 0..<size { filled.async(group: group) { waiting.add(-1) } }
          let length = waiting.add(size)
          most.change { $0 = max($0, length) }
          let end = Clock.uptime() + 5_000_000
          while Clock.uptime() < end {}
        }
      }
      #expect(empties(group))
      #expect(waiting.value == 0)
      #expect(most.value < batches * size / 2)
    }

    @Test("a run loop that performs an item of it goes on")
    func runLoop() {
      let loop = RunLoopQueue(label: "loop")
      let busy = DispatchQueue(label: "busy", target: loop)
      let (isDone, count) = (Shared(false), Tally())
      Self.keepBusy(busy, until: isDone)
      loop.async { count.add() }
      while count.value == 0 { #expect(loop.perform()) }
      isDone.change { $0 = true }
      while loop.perform() {}
    }
  }
}
