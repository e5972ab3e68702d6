import Glibc
import Testing

@testable import ConcourseRuntime

extension Crash {
  @Suite("The main queue on the wrong thread")
  struct MainThreadCrashTests {
    @Test("S37 dispatchMain off the main thread")
    func dispatchMainElsewhere() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        DispatchQueue.global().async { dispatchMain() }
        awaitDeath()
      }
      end.says("dispatchMain() was called off the main thread")
    }

    @Test("drainMainQueue off the main thread")
    func drainElsewhere() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        DispatchQueue.global().async { DispatchQueue.drainMainQueue() }
        awaitDeath()
      }
      end.says("drainMainQueue() was called off the main thread")
    }

    @Test("S37 dispatchMain from inside an item of the main queue", .enabled(if: MainThreadLoan.isPossible))
    func dispatchMainWithin() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        MainThreadLoan.run {
          DispatchQueue.main.async { dispatchMain() }
          dispatchMain()
        }
        awaitDeath()
      }
      end.says("dispatchMain() was called from inside an item of a queue")
    }

    @Test("S8 sync on the main queue from the main thread", .enabled(if: MainThreadLoan.isPossible))
    func mainFromMain() async {
      let outside = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        MainThreadLoan.run { DispatchQueue.main.sync {} }
        awaitDeath()
      }
      outside.says("sync on queue \"com.apple.main-thread\", whose items run on the main thread")
      let item = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        MainThreadLoan.run {
          DispatchQueue.main.async { DispatchQueue.main.sync {} }
          dispatchMain()
        }
        awaitDeath()
      }
      item.says("sync on queue \"com.apple.main-thread\", whose items run on the main thread")
    }

    @Test(
      "S8 sync on a queue that ends in the main queue, from the main thread",
      .enabled(if: MainThreadLoan.isPossible))
    func aboveMain() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        MainThreadLoan.run { DispatchQueue(label: "above", target: .main).sync {} }
        awaitDeath()
      }
      end.says("sync on queue \"above\", whose items run on the main thread")
    }
  }
}
