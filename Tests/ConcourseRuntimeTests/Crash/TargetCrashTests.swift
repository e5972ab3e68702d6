import Glibc
import Testing

@testable import ConcourseRuntime

extension Crash {
  @Suite("Impossible targets")
  struct TargetCrashTests {
    @Test("S23 retargeting an active queue, with and without an explicit target")
    func active() async {
      let plain = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        DispatchQueue(label: "active").setTarget(queue: .global())
      }
      plain.says("setTarget(queue:) on queue \"active\", which is active")
      let targeted = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        DispatchQueue(label: "active", target: DispatchQueue(label: "target")).setTarget(queue: nil)
      }
      targeted.says("setTarget(queue:) on queue \"active\", which is active")
    }

    @Test("S23 retargeting after the activation")
    func activated() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let queue = DispatchQueue(label: "activated", attributes: .initiallyInactive)
        queue.setTarget(queue: .global(qos: .utility))
        queue.activate()
        queue.setTarget(queue: .global())
      }
      end.says("setTarget(queue:) on queue \"activated\", which is active")
    }

    @Test("S25 a queue as its own target")
    func own() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let queue = DispatchQueue(label: "self", attributes: .initiallyInactive)
        queue.setTarget(queue: queue)
      }
      end.says("setTarget(queue:) on queue \"self\": the targets of \"self\" lead back to it")
    }

    @Test("S25 a cycle of three")
    func cycle() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let a = DispatchQueue(label: "A", attributes: .initiallyInactive)
        let b = DispatchQueue(label: "B", target: a)
        let c = DispatchQueue(label: "C", attributes: .concurrent, target: b)
        a.setTarget(queue: c)
      }
      end.says("setTarget(queue:) on queue \"A\": the targets of \"C\" lead back to it")
    }

    @Test("S25 a pending change that another change turns into a cycle")
    func meanwhile() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        func make(_ label: String) -> DispatchQueue {
          DispatchQueue(
            cLabel: label, isConcurrent: false, qos: .unspecified, isInactive: false, target: nil,
            mayChangeTarget: true)
        }
        let (a, b) = (make("A"), make("B"))
        let (started, goOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        a.async {
          started.signal()
          _ = comes(goOn)
        }
        #expect(comes(started))
        a.setTarget(queue: b)
        // The pending change in A's list counts.
        b.setTarget(queue: a)
        goOn.signal()
        a.sync {}
      }
      end.says("setTarget(queue:) on queue \"B\": the targets of \"A\" lead back to it")
    }
  }
}
