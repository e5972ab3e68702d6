import Glibc
import Testing

@testable import ConcourseRuntime

extension Engine {
  @Suite("asyncAfter")
  struct AfterTests {
    @Test("S81 an earlier deadline that comes later is not kept waiting by a later one")
    func rearmed() {
      let order = Shared<[Int]>([])
      let done = DispatchSemaphore(value: 0)
      let queue = DispatchQueue(label: "timers")
      let start = DispatchTime.now()
      queue.asyncAfter(deadline: start + 1) {
        order.change { $0.append(2) }
        done.signal()
      }
      queue.asyncAfter(deadline: start + 0.4) { order.change { $0.append(1) } }
      queue.asyncAfter(deadline: start) { order.change { $0.append(0) } }
      #expect(comes(done))
      #expect(order.value == [0, 1, 2])
    }

    @Test("a delay as a Duration, and flags and classes of delayed items")
    func forms() {
      let queue = DispatchQueue(label: "shared", attributes: .concurrent)
      let start = Clock.uptime()
      let found = Shared<[Bool]>([])
      let done = DispatchSemaphore(value: 0)
      queue.asyncAfter(.milliseconds(10), qos: .utility, flags: [.barrier, .enforceQoS]) {
        found.change {
          $0 = [
            Clock.uptime() >= start + 10_000_000, _dispatchPreconditionTest(.onQueueAsBarrier(queue)),
            Frame.current?.pointee.level == .utility,
          ]
        }
        done.signal()
      }
      #expect(comes(done))
      #expect(found.value == [true, true, true])
    }

    @Test("S82 what will never run is released at once")
    func never() {
      let released = DispatchSemaphore(value: 0)
      final class Witness: Sendable {
        let released: DispatchSemaphore
        init(_ released: DispatchSemaphore) { self.released = released }
        deinit { released.signal() }
      }
      let witness = Witness(released)
      DispatchQueue.global().asyncAfter(deadline: .distantFuture) { _ = witness }
      DispatchQueue.global().asyncAfter(wallDeadline: .distantFuture) { _ = witness }
      _ = consume witness
      #expect(comes(released))
    }

    /// Trap 19, in a process of its own, whose descriptors are used up.
    @Test(
      "trap 19: without descriptors timers still fire, after a word about it", .enabled(if: !Sanitizer.isOn))
    func withoutDescriptors() async {
      let end = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
        while dup(2) >= 0 {}
        let group = DispatchGroup()
        let early = Tally()
        for number in 0..<20 {
          let deadline = DispatchTime.now() + .milliseconds(3 * (20 - number))
          group.enter()
          DispatchQueue.global().asyncAfter(deadline: deadline) {
            if DispatchTime.now() < deadline { early.add() }
            group.leave()
          }
          group.enter()
          DispatchQueue.global().asyncAfter(wallDeadline: .now() + .milliseconds(number)) { group.leave() }
        }
        let fired = empties(group)
        // Room for Swift Testing to report.
        for descriptor: Int32 in 100..<200 { close(descriptor) }
        #expect(fired)
        #expect(early.value == 0)
      }
      let spoken = String(decoding: end?.standardErrorContent ?? [], as: UTF8.self)
      #expect(
        spoken == "Concourse: no descriptors left for the event loop; timers go on with coarser sleeping\n")
    }
  }
}
