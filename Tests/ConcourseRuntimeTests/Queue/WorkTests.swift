import Testing

@testable import ConcourseRuntime

@Suite("Work of nodes")
struct WorkTests {
  @Test("a queue's work fits into the room that a node has for its client")
  func size() {
    #expect(MemoryLayout<Work>.size <= MemoryLayout<WorkNode.Payload>.size)
    #expect(MemoryLayout<Work>.alignment <= MemoryLayout<WorkNode.Payload>.alignment)
    #expect(MemoryLayout<WorkNode>.size == 48)
  }
}

extension Engine {
  @Suite("Entries of the pool")
  struct EntryTests {
    /// The entry of the serial queue is in the root, with the concurrent queue's place.
    @Test("a queue that a concurrent queue has admitted gives its place back")
    func admittedQueue() async {
      let outer = DispatchQueue(label: "outer", attributes: .concurrent)
      let inner = DispatchQueue(label: "inner", target: outer)
      for _ in 0..<100 {
        await withCheckedContinuation { done in inner.async { done.resume() } }
        #expect(awaitValue { !outer.state.snapshot.hasReaders })
      }
    }
  }
}
