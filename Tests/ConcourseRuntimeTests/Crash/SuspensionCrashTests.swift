import Glibc
import Testing

@testable import ConcourseRuntime

extension Crash {
  @Suite("Suspension and activation out of balance")
  struct SuspensionCrashTests {
    @Test("S29 resume on a queue that was never suspended")
    func resume() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        DispatchQueue(label: "running").resume()
      }
      end.says("resume() on queue \"running\", which is not suspended: more resumes than suspends")
    }

    @Test("S29 one resume more than suspends, on a concurrent queue")
    func overResume() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let queue = DispatchQueue(label: "running", attributes: .concurrent)
        queue.suspend()
        queue.suspend()
        queue.resume()
        queue.resume()
        queue.resume()
      }
      end.says("resume() on queue \"running\", which is not suspended: more resumes than suspends")
    }

    @Test("S29 resume on an inactive queue")
    func resumeInactive() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        DispatchQueue(label: "sleeping", attributes: .initiallyInactive).resume()
      }
      end.says("resume() on queue \"sleeping\", which is inactive and not suspended; call activate()")
    }

    @Test("S33 dropping a suspended queue, idle and with an item waiting")
    func dropSuspended() async {
      let idle = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        DispatchQueue(label: "held").suspend()
      }
      idle.says("the last reference to queue \"held\" was released while it was suspended; resume it first")
      let busy = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        drop(attributes: .concurrent) { queue in
          queue.suspend()
          queue.async {}
        }
        awaitDeath()
      }
      busy.says("the last reference to queue \"held\" was released while it was suspended; resume it first")
    }

    @Test("S33 dropping a queue that one of its items has suspended")
    func dropSuspendedByItem() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        drop { queue in
          queue.async { [unowned queue] in queue.suspend() }
          queue.async {}
        }
        awaitDeath()
      }
      end.says("the last reference to queue \"held\" was released while it was suspended; resume it first")
    }

    @Test("S33 dropping a suspended queue that holds an item back")
    func dropHoldingBack() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let target = DispatchQueue(label: "target")
        target.suspend()
        let queue = DispatchQueue(label: "held", attributes: .concurrent, target: target)
        queue.async {}
        queue.suspend()
        target.resume()
        // The item is held back before this: the target is serial.
        target.sync {}
        #expect(queue.extras.heldBack.isEmpty == false && queue.state.snapshot.readers == 0)
      }
      end.says("the last reference to queue \"held\" was released while it was suspended; resume it first")
    }

    @Test("S33 dropping an inactive queue, idle and with an item waiting")
    func dropInactive() async {
      let idle = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        drop(attributes: .initiallyInactive) { _ in }
      }
      idle.says("the last reference to queue \"held\" was released while it was inactive; activate it first")
      let busy = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        drop(attributes: [.initiallyInactive, .concurrent]) { queue in queue.async {} }
      }
      busy.says("the last reference to queue \"held\" was released while it was inactive; activate it first")
    }
  }
}

/// Makes a queue, applies `use` to it, and drops it.
private func drop(attributes: DispatchQueue.Attributes = [], _ use: (DispatchQueue) -> Void) {
  use(DispatchQueue(label: "held", attributes: attributes))
}
