import Concourse
import Glibc
import Testing

/// Code that claims to be isolated to an actor on a queue. The messages of claims about the main actor are
/// Swift's own.
@Suite("False claims of isolation", .serialized, .timeLimit(.minutes(10)))
struct ExecutorCrashTests {
  @Test(
    "assumeIsolated outside of the queue, in an item of another queue, and in an ordinary item of a target")
  func assumeIsolated() async {
    let outside = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
      Housed(DispatchSerialQueue(label: "home")).assume()
    }
    outside.says("code was expected to be isolated to the actors on queue \"home\", but this is ")
    let other = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
      let actor = Housed(DispatchSerialQueue(label: "home"))
      await DispatchQueue(label: "other").run { actor.assume() }
    }
    other.says("isolated to the actors on queue \"home\", but this is an item of \"other\"")
    let shared = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
      let target = DispatchConcurrentQueue(label: "shared")
      let actor = Housed(DispatchSerialQueue(label: "home", target: target))
      // Alone for now, but the actor's queue does not ensure it.
      await target.run(flags: .barrier) { actor.assume() }
    }
    shared.says("isolated to the actors on queue \"home\", but this is an item of \"shared\"")
  }

  @Test("preconditionIsolated in a task that has left the queue, and for a workloop")
  func preconditionIsolated() async {
    let left = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
      await Housed(DispatchSerialQueue(label: "home")).leave()
    }
    left.says("isolated to the actors on queue \"home\", but this is ")
    let workloop = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
      let workloop = DispatchWorkloop(label: "loop")
      await DispatchQueue.global().run { workloop.preconditionIsolated() }
    }
    workloop.says("isolated to the actors on queue \"loop\", but this is an item of \"com.apple.root")
  }
}

extension Optional where Wrapped == ExitTest.Result {
  /// Expects that the process printed only one line, about a client bug, that contains `text`.
  fileprivate func says(_ text: String, sourceLocation: SourceLocation = #_sourceLocation) {
    let spoken = String(decoding: self?.standardErrorContent ?? [], as: UTF8.self)
    #expect(spoken.split(separator: "\n").count == 1, "\(spoken)", sourceLocation: sourceLocation)
    #expect(spoken.hasPrefix("Concourse: BUG IN CLIENT OF DISPATCH: "), sourceLocation: sourceLocation)
    #expect(spoken.contains(text), "\(spoken)", sourceLocation: sourceLocation)
    #expect(spoken.contains(#/ \[C108\]\n$/#), "\(spoken)", sourceLocation: sourceLocation)
  }
}

/// The main queue as an executor. The tests' own main thread serves it.
@Suite("MainActor", .timeLimit(.minutes(10)))
struct MainActorTests {
  @Test("the main queue's items, and jobs of an actor whose queue ends in it, are isolated to the main actor")
  func mainQueue() async {
    await DispatchQueue.main.run { MainActor.assumeIsolated {} }
    let actor = Housed(DispatchSerialQueue(label: "home", target: .main))
    await actor.visitMainActor()
    await MainActor.run { actor.assume() }
    let preferring = Task(executorPreference: DispatchQueue.main) {
      dispatchPrecondition(condition: .onQueue(.main))
    }
    await preferring.value
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
