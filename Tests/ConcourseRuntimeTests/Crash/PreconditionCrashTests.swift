import Glibc
import Testing

@testable import ConcourseRuntime

extension Crash {
  @Suite("Failed dispatchPrecondition")
  struct PreconditionCrashTests {
    @Test("S138, S142 onQueue outside any item, and in an item of another queue")
    func onQueue() async {
      let outside = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        dispatchPrecondition(condition: .onQueue(DispatchQueue(label: "wanted")))
      }
      outside.says("expected to be on queue \"wanted\", but this is no item of any queue")
      outside.says("PreconditionCrashTests.swift:")
      let other = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        DispatchQueue(label: "other").sync {
          dispatchPrecondition(condition: .onQueue(DispatchQueue(label: "wanted")))
        }
      }
      other.says("expected to be on queue \"wanted\", but this is an item of \"other\"")
    }

    @Test("S138 an asynchronous item is not on its submitter's queue")
    func submitter() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let submitter = DispatchQueue(label: "submitter")
        let queue = DispatchQueue(label: "queue")
        submitter.async {
          queue.async { dispatchPrecondition(condition: .onQueue(submitter)) }
        }
        awaitDeath()
      }
      end.says("expected to be on queue \"submitter\", but this is an item of \"queue\"")
    }

    @Test("S140 onQueueAsBarrier in an ordinary item, and on a global queue")
    func onQueueAsBarrier() async {
      let ordinary = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let queue = DispatchQueue(label: "shared", attributes: .concurrent)
        queue.async { dispatchPrecondition(condition: .onQueueAsBarrier(queue)) }
        awaitDeath()
      }
      ordinary.says("expected to be alone on queue \"shared\", but this is an item of \"shared\"")
      let global = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        DispatchQueue.global().async(flags: .barrier) {
          dispatchPrecondition(condition: .onQueueAsBarrier(.global()))
        }
        awaitDeath()
      }
      global.says("expected to be alone on queue \"com.apple.root.default-qos\"")
    }

    @Test("S141 notOnQueue in an item of a child queue, and in a nested sync on another queue")
    func notOnQueue() async {
      let below = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let target = DispatchQueue(label: "target")
        DispatchQueue(label: "child", target: target).async {
          dispatchPrecondition(condition: .notOnQueue(target))
        }
        awaitDeath()
      }
      below.says("expected not to be on queue \"target\", but this is an item of \"child\"")
      let waiting = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let outer = DispatchQueue(label: "outer")
        let inner = DispatchQueue(label: "inner")
        outer.sync { inner.sync { dispatchPrecondition(condition: .notOnQueue(outer)) } }
      }
      waiting.says("expected not to be on queue \"outer\", but this is an item of \"inner\"")
    }
  }
}
