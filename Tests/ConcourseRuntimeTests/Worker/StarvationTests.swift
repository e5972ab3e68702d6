import Testing

@testable import ConcourseRuntime

@Suite("Starvation", .serialized)
struct StarvationTests {
  @Test("S143 at the cap, with every thread waiting for a queue that nobody can drain, work goes on")
  func cap() async {
    await #expect(processExitsWith: .success) {
      PoolSize.cap = 4
      let queue = DispatchQueue(label: "test.starvation")
      let group = DispatchGroup()
      for _ in 0..<12 {
        DispatchQueue.global().async(group: group) {
          queue.async(group: group) {}
          queue.sync {}
        }
      }
      precondition(group.wait(timeout: .now() + .seconds(60)) == .success)
    }
  }

  @Test("S143 at the cap, what unblocks the threads runs although it came last")
  func gate() async {
    await #expect(processExitsWith: .success) {
      PoolSize.cap = 4
      let gate = DispatchSemaphore(value: 0)
      let group = DispatchGroup()
      for _ in 0..<8 {
        DispatchQueue(label: "test.starvation.gate").async(group: group) { gate.wait() }
      }
      DispatchQueue.global().async(group: group) { for _ in 0..<8 { gate.signal() } }
      precondition(group.wait(timeout: .now() + .seconds(60)) == .success)
    }
  }
}
