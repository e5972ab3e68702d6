import Glibc
import Testing

@testable import ConcourseRuntime

extension Crash {
  /// An item that ends its thread never returns, and would hold its queue for ever. Tests/CInterface has items that
  /// longjmp and exceptions leave.
  @Suite("Threads that end inside an item", .enabled(if: !Sanitizer.isOn))
  struct ThreadExitCrashTests {
    @Test("S147 an asynchronous item, serial, concurrent and global")
    func asynchronousItem() async {
      let serial = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        DispatchQueue(label: "serial").async { endThread() }
        awaitDeath()
      }
      serial.says(
        "an item of queue \"serial\" never returned: it ended its thread (pthread_exit, pthread_cancel), or longjmp or "
          + "an exception left it; what it holds is never given back")
      let concurrent = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        DispatchQueue(label: "concurrent", attributes: .concurrent).async { endThread() }
        awaitDeath()
      }
      concurrent.says("an item of queue \"concurrent\" never returned: it ended its thread")
      let global = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        DispatchQueue.global(qos: .utility).async { endThread() }
        awaitDeath()
      }
      global.says("an item of queue \"com.apple.root.utility-qos\" never returned: it ended its thread")
    }

    @Test("S147 a synchronous item, as the first call of a thread of the program")
    func synchronousItem() async {
      let first = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        #expect(onThreads(1) { _ in DispatchQueue(label: "sync").sync { endThread() } })
      }
      first.says("an item of queue \"sync\" never returned: it ended its thread")
      let reader = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        #expect(
          onThreads(1) { _ in DispatchQueue(label: "reader", attributes: .concurrent).sync { endThread() } })
      }
      reader.says("an item of queue \"reader\" never returned: it ended its thread")
      let waiting = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        #expect(onThreads(1) { _ in DispatchQueue(label: "waiting").asyncAndWait { endThread() } })
      }
      waiting.says("an item of queue \"waiting\" never returned: it ended its thread")
    }

    @Test("S147 the message names the innermost of nested items, and never one that has returned")
    func nestedItems() async {
      let inner = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        DispatchQueue(label: "outer").async { DispatchQueue(label: "inner").sync { endThread() } }
        awaitDeath()
      }
      inner.says("an item of queue \"inner\" never returned: it ended its thread")
      let outer = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        DispatchQueue(label: "outer").async {
          DispatchQueue(label: "inner").sync {}
          endThread()
        }
        awaitDeath()
      }
      outer.says("an item of queue \"outer\" never returned: it ended its thread")
    }

    @Test("S147 a cancelled thread")
    func cancellation() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        DispatchQueue(label: "cancelled").async {
          pthread_cancel(pthread_self())
          pthread_testcancel()
        }
        awaitDeath()
      }
      end.says("an item of queue \"cancelled\" never returned: it ended its thread")
    }

    @Test("S147 an item of the main queue", .enabled(if: MainThreadLoan.isPossible))
    func mainQueue() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        MainThreadLoan.run {
          DispatchQueue.main.async { endThread() }
          dispatchMain()
        }
        awaitDeath()
      }
      end.says("an item of queue \"com.apple.main-thread\" never returned: it ended its thread")
    }

    @Test("S147 an iteration of a parallel loop, and a body that runs once")
    func loopsAndOnce() async {
      let loop = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        #expect(onThreads(1) { _ in DispatchQueue.concurrentPerform(iterations: 1) { _ in endThread() } })
      }
      loop.says("an item of queue \"com.apple.root.default-qos\" never returned: it ended its thread")
      let once = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        #expect(onThreads(1) { _ in DispatchOnce().perform { endThread() } })
      }
      once.says(
        "a body that runs once never returned: it ended its thread (pthread_exit, pthread_cancel), or longjmp or an "
          + "exception left it; threads that wait for it would wait for ever")
    }

    @Test("S147 the last reference to a queue goes although an item of it has not returned")
    func lastReference() async {
      let owned = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let queue = DispatchQueue(label: "owned")
        let isTaken = queue.state.takeExclusively(CurrentThread.id)
        #expect(isTaken)
      }
      owned.says(
        "the last reference to queue \"owned\" was released while an item of it ran, or after longjmp or an exception "
          + "had left one")
      let read = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let queue = DispatchQueue(label: "read", attributes: .concurrent)
        let isTaken = queue.state.takeReaderPlace()
        #expect(isTaken)
      }
      read.says("the last reference to queue \"read\" was released while an item of it ran")
    }

    @Test("S147 a thread that has run items may end outside of them")
    func outsideOfItems() async {
      await #expect(processExitsWith: .success) {
        var thread = pthread_t()
        let failure = pthread_create(
          &thread, nil,
          { _ in
            let queue = DispatchQueue(label: "queue")
            queue.sync { queue.async {} }
            pthread_exit(nil)
          }, nil)
        #expect(failure == 0 && pthread_join(thread, nil) == 0)
      }
    }
  }
}

/// Declared to return, so that the closures around it are ordinary items.
private func endThread() { pthread_exit(nil) }
