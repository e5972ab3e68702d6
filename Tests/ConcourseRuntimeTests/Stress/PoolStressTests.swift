import Glibc
import Testing

@testable import ConcourseRuntime

extension Engine {
  @Suite("Stress: blocked workers")
  struct PoolStressTests {
    @Test(
      "S143, trap 9: six items wait for a seventh, again and again, in every class",
      arguments: [DispatchQoS.QoSClass.userInteractive, .default, .utility, .background])
    func seventh(qosClass: DispatchQoS.QoSClass) {
      for _ in 0..<20 {
        let group = DispatchGroup()
        let goOn = DispatchSemaphore(value: 0)
        for _ in 0..<6 {
          DispatchQueue.global(qos: qosClass).async(group: group) { #expect(comes(goOn)) }
        }
        DispatchQueue.global(qos: qosClass).async(group: group) { for _ in 0..<6 { goOn.signal() } }
        #expect(empties(group))
      }
    }

    @Test("S143 many items wait for one queued behind them, on queues of their own")
    func manyWait() {
      let waiting = Sanitizer.shrunk(150)
      let group = DispatchGroup()
      let goOn = DispatchSemaphore(value: 0)
      for number in 0..<waiting {
        DispatchQueue(label: "waits \(number)").async(group: group) { #expect(comes(goOn)) }
      }
      DispatchQueue(label: "frees").async(group: group) { for _ in 0..<waiting { goOn.signal() } }
      #expect(empties(group))
    }

    @Test("S143 items blocked in calls unknown to the engine wait for one queued behind them")
    func foreignCalls() {
      let waiting = 12
      var ends: [Int32] = [0, 0]
      #expect(pipe(&ends) == 0)
      let (input, output) = (ends[0], ends[1])
      let group = DispatchGroup()
      let read = Tally()
      for _ in 0..<waiting {
        DispatchQueue.global().async(group: group) {
          var byte: UInt8 = 0
          if Glibc.read(input, &byte, 1) == 1 { read.add() }
        }
      }
      DispatchQueue.global().async(group: group) {
        let bytes = [UInt8](repeating: 1, count: waiting)
        #expect(write(output, bytes, waiting) == waiting)
      }
      let isDone = empties(group)
      #expect(isDone)
      #expect(read.value == waiting)
      // Stays open if items may still read from it.
      if isDone { for end in ends { close(end) } }
    }

    @Test("S143 items that compute while they wait for one queued behind them")
    func spinning() {
      let group = DispatchGroup()
      let goOn = Tally()
      let late = Tally()
      for _ in 0..<PoolSize.width + 2 {
        DispatchQueue.global().async(group: group) {
          if !awaitValue({ goOn.value > 0 }) { late.add() }
        }
      }
      DispatchQueue.global().async(group: group) { goOn.add() }
      #expect(empties(group))
      #expect(late.value == 0)
    }

    @Test("S143 chains of synchronous calls through many queues")
    func chains() {
      let queues = (0..<12).map { DispatchQueue(label: "link \($0)") }
      let group = DispatchGroup()
      let ran = Tally()
      for _ in 0..<Sanitizer.shrunk(300) {
        DispatchQueue.global().async(group: group) {
          descend(queues[...]) { _ = ran.add() }
        }
      }
      #expect(empties(group))
      #expect(ran.value == Sanitizer.shrunk(300))
    }
  }
}

/// Runs `body` inside sync items of all `queues`, always in the same order.
private func descend(_ queues: ArraySlice<DispatchQueue>, _ body: () -> Void) {
  guard let first = queues.first else { return body() }
  first.sync { descend(queues.dropFirst(), body) }
}
