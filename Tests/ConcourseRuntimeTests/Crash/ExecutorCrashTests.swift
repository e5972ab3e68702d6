import Concourse
import Glibc
import Testing

extension Crash {
  /// Code that claims to be isolated to an actor on a queue. The messages of claims about the main actor are
  /// Swift's own.
  @Suite("Isolation to actors on queues")
  struct ExecutorCrashTests {
    @Test("assumeIsolated outside any item, in an item of another queue, and in an ordinary item of a target")
    func assumeIsolated() async {
      let outside = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        Housed(DispatchSerialQueue(label: "home")).assume()
      }
      outside.says(
        "code was expected to be isolated to the actors on queue \"home\", but this is no item of any queue")
      let other = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let actor = Housed(DispatchSerialQueue(label: "home"))
        DispatchQueue(label: "other").async { actor.assume() }
        awaitDeath()
      }
      other.says("isolated to the actors on queue \"home\", but this is an item of \"other\"")
      let shared = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let target = DispatchConcurrentQueue(label: "shared")
        let actor = Housed(DispatchSerialQueue(label: "home", target: target))
        // Alone for now, but not by the rules of the actor's queue.
        target.async(flags: .barrier) { actor.assume() }
        awaitDeath()
      }
      shared.says("isolated to the actors on queue \"home\", but this is an item of \"shared\"")
    }

    @Test("preconditionIsolated in a task that has left the queue, and on a workloop's behalf")
    func preconditionIsolated() async {
      let left = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let actor = Housed(DispatchSerialQueue(label: "home"))
        await actor.leave()
      }
      left.says("isolated to the actors on queue \"home\", but this is no item of any queue")
      let workloop = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let workloop = DispatchWorkloop(label: "loop")
        DispatchQueue.global().async { workloop.preconditionIsolated() }
        awaitDeath()
      }
      workloop.says("isolated to the actors on queue \"loop\", but this is an item of \"com.apple.root")
    }

    @Test(
      "items of the main queue, and jobs of an actor whose queue ends in it, are isolated to the main actor",
      .enabled(if: MainThreadLoan.isPossible))
    func mainActor() async {
      await #expect(processExitsWith: .exitCode(7)) {
        MainThreadLoan.run {
          DispatchQueue.main.async {
            MainActor.assumeIsolated {}
            let actor = Housed(DispatchSerialQueue(label: "home", target: .main))
            actor.assume()
            Task {
              await actor.visitMainActor()
              exit(7)
            }
          }
          dispatchMain()
        }
        awaitDeath()
      }
    }
  }
}

private actor Housed {
  private nonisolated let queue: DispatchSerialQueue
  nonisolated var unownedExecutor: UnownedSerialExecutor { queue.asUnownedSerialExecutor() }

  init(_ queue: DispatchSerialQueue) { self.queue = queue }

  nonisolated func assume() { assumeIsolated { _ in } }

  func leave() async { await elsewhere() }

  @concurrent private nonisolated func elsewhere() async { preconditionIsolated() }

  func visitMainActor() {
    dispatchPrecondition(condition: .onQueue(.main))
    MainActor.assumeIsolated {}
  }
}
