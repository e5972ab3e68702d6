import Glibc
import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

extension Engine {
  /// The system grants the pool two threads. The monitor would be the third, and has none.
  @Suite("Refused threads", .enabled(if: twoMayRun, "needs two processors"))
  struct RefusedThreadTests {
    @Test("trap 19: without the monitor, an item that waits for what it has submitted gets it")
    func nothingIsDeferred() async {
      await #expect(processExitsWith: .success) {
        useTwoThreads()
        let queue = DispatchQueue.global()
        let done = DispatchSemaphore(value: 0)
        var ends: [Int32] = [0, 0]
        #expect(pipe(&ends) == 0)
        let (input, output) = (ends[0], ends[1])
        queue.async {
          becomeQuick(WorkerThread.current!)
          #expect(awaitValue { Runtime.shared.bands[0].counters.snapshot.parked == 1 })
          queue.async { #expect(write(output, "x", 1) == 1) }
          var byte: UInt8 = 0
          #expect(read(input, &byte, 1) == 1)
          done.signal()
        }
        #expect(comes(done))
        #expect(!Runtime.shared.monitor.hasThread)
      }
    }

    @Test("trap 19: without the monitor, a queue that an item makes runnable does not wait for it")
    func nothingIsKept() async {
      await #expect(processExitsWith: .success) {
        useTwoThreads()
        let done = DispatchSemaphore(value: 0)
        var ends: [Int32] = [0, 0]
        #expect(pipe(&ends) == 0)
        let (input, output) = (ends[0], ends[1])
        DispatchQueue.global().async {
          #expect(awaitValue { Runtime.shared.bands[0].counters.snapshot.parked == 1 })
          DispatchQueue(label: "kept").async { #expect(write(output, "x", 1) == 1) }
          var byte: UInt8 = 0
          #expect(read(input, &byte, 1) == 1)
          done.signal()
        }
        #expect(comes(done))
        #expect(!Runtime.shared.monitor.hasThread)
      }
    }

    @Test("trap 19: without the monitor, a worker with short items leaves none of an event's behind")
    func itemsOfEvents() async {
      await #expect(processExitsWith: .success) {
        // The loop has its thread.
        useTwoThreads(besides: 1) { #expect(EventLoop.shared.begin() != nil) }
        var ends: [[Int32]] = [[0, 0], [0, 0]]
        #expect(pipe(&ends[0]) == 0 && pipe(&ends[1]) == 0)
        let (trigger, input, output) = (ends[0][1], ends[1][0], ends[1][1])
        let done = DispatchSemaphore(value: 0)
        let isLast = Shared(false)
        let watch = FileWatch(
          descriptor: ends[0][0], interest: .read,
          owner: WatchOwner { watch in
            var byte: UInt8 = 0
            #expect(read(watch.descriptor, &byte, 1) == 1)
            let blocks = isLast.value
            DispatchQueue.global().async {
              var byte: UInt8 = 0
              if blocks { #expect(read(input, &byte, 1) == 1) }
              done.signal()
            }
            if blocks { DispatchQueue.global().async { #expect(write(output, "x", 1) == 1) } }
            watch.rearm()
          })
        watch.install()
        for round in 1...100 {
          // The items of the other rounds are short.
          isLast.change { $0 = round % 20 == 0 }
          #expect(write(trigger, "x", 1) == 1)
          let came = comes(done)
          #expect(came)
          guard came else { break }
          #expect(awaitValue { Runtime.shared.bands[0].counters.snapshot.parked == 2 })
        }
        #expect(!Runtime.shared.monitor.hasThread)
        watch.remove()
      }
    }

    @Test("trap 19: without the loop's thread, events come while the worker that waited for them is busy")
    func noLoopThread() async {
      await #expect(processExitsWith: .success) {
        let pipes = (0..<3).map { _ in Ends.pipe() }
        useTwoWorkers()
        #expect(awaitValue { Runtime.shared.bands[0].counters.snapshot.parked == 2 })
        SystemScript.refuse(.thread, with: EAGAIN)
        let (blocks, done) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let first = DispatchSource.makeReadSource(fileDescriptor: pipes[0].reader)
        first.setEventHandler {
          blocks.signal()
          var byte: UInt8 = 0
          // Until the other handler has run.
          #expect(read(pipes[2].reader, &byte, 1) == 1)
          done.signal()
          first.cancel()
        }
        let second = DispatchSource.makeReadSource(fileDescriptor: pipes[1].reader)
        second.setEventHandler {
          pipes[2].send("x")
          second.cancel()
        }
        first.activate()
        second.activate()
        pipes[0].send("x")
        #expect(comes(blocks))
        pipes[1].send("x")
        #expect(comes(done))
        #expect(!EventLoop.shared.hasThread)
        SystemScript.clear()
      }
    }

    @Test("trap 19: a refused thread is asked for again even if its caller hangs in writing the message")
    func fullStandardError() async {
      await #expect(processExitsWith: .success) {
        var ends: [Int32] = [0, 0]
        #expect(pipe(&ends) == 0)
        let error = dup(2)
        dup2(ends[1], 2)
        _ = fcntl(2, F_SETFL, O_NONBLOCK)
        while write(2, "x", 1) == 1 {}
        _ = fcntl(2, F_SETFL, 0)
        SystemScript.refuse(.thread, with: EAGAIN, times: 1)
        let done = DispatchSemaphore(value: 0)
        startThread { DispatchQueue.global().async { done.signal() } }
        let came = comes(done)
        dup2(error, 2)
        #expect(came)
      }
    }

    @Test("trap 19: the monitor does not wait for a reader of standard error")
    func fullPipe() throws {
      var ends: [Int32] = [0, 0]
      try #require(pipe(&ends) == 0)
      defer { for end in ends { close(end) } }
      #expect(Trap.mayWrite(ends[1]))
      _ = fcntl(ends[1], F_SETFL, O_NONBLOCK)
      while write(ends[1], "x", 1) == 1 {}
      #expect(!Trap.mayWrite(ends[1]))
      // A descriptor that is closed blocks nothing.
      #expect(Trap.mayWrite(-1))
    }

    @Test("trap 19: a timer fires although the loop's thread, and at first the event queue, were refused")
    func timersBeforeTheQueue() async {
      await #expect(processExitsWith: .success) {
        useTwoThreads()
        SystemScript.refuse(.epollCreate, with: EMFILE, times: 1)
        let done = DispatchSemaphore(value: 0)
        let queue = DispatchQueue(label: "timers")
        queue.asyncAfter(deadline: .now() + .milliseconds(50)) { done.signal() }
        // This one finds the event queue.
        queue.asyncAfter(deadline: .now() + .seconds(1000)) {}
        #expect(EventLoop.shared.pollerIfAny != nil)
        let begin = Clock.uptime()
        #expect(comes(done))
        // A worker that waits for events does so for 5 s.
        #expect(Clock.uptime() - begin < 4_000_000_000)
      }
    }

    @Test("trap 19: without the monitor, a lowered worker makes the worker of another band itself")
    func loweredSubmitter() async {
      await #expect(processExitsWith: .success) {
        // The background worker has a thread, but not the monitor.
        SystemScript.refuse(.thread, with: EAGAIN, times: 1, after: 1)
        let done = DispatchSemaphore(value: 0)
        DispatchQueue.global(qos: .background).async { DispatchQueue.global().async { done.signal() } }
        #expect(comes(done))
      }
    }

    @Test("trap 19: the monitor's thread is asked for once a tick at most, and had when the system has one")
    func onceATick() async {
      await #expect(processExitsWith: .success) {
        useTwoThreads()
        let monitor = Runtime.shared.monitor
        let before = SystemScript.count(.thread)
        let begin = Clock.uptime()
        while Clock.uptime() - begin < 20_000_000 { monitor.watch() }
        let ticks = Int((Clock.uptime() - begin) / 1_000_000)
        let asked = SystemScript.count(.thread) - before
        #expect(asked > 0 && asked <= ticks + 1, "\(asked) times in \(ticks) ms")
        SystemScript.clear()
        #expect(
          awaitValue {
            monitor.watch()
            return monitor.hasThread
          })
      }
    }
  }
}

private final class WatchOwner: FileWatchOwner {
  private let body: @Sendable (FileWatch) -> Void
  init(_ body: @escaping @Sendable (FileWatch) -> Void) { self.body = body }
  func fileIsReady(_ watch: FileWatch) { body(watch) }
}

/// Whether two workers may be active.
private var twoMayRun: Bool {
  CPUQuota.width(affinity: Processor.affinityCount, quota: CPUQuota.processors()) > 1
}

/// Makes the calling worker's entries look so short that it would defer an item.
private func becomeQuick(_ worker: WorkerPointer) {
  // ORDERING: relaxed; the worker's own.
  let progress = worker.pointee.progress.load(ordering: .relaxed)
  let now = Clock.uptime()
  _ = worker.pointee.deferral.defers(progress: progress, now: now)
  worker.pointee.deferral.runDry(progress: progress, now: now + 100)
}

/// Two workers, and no further thread besides those that `begin` makes.
private func useTwoThreads(besides others: Int = 0, _ begin: () -> Void = {}) {
  SystemScript.refuse(.thread, with: EAGAIN, after: 2 + others)
  begin()
  useTwoWorkers()
  #expect(!Runtime.shared.monitor.hasThread)
}

/// Makes the default band have two workers.
private func useTwoWorkers() {
  let begun = Tally()
  let group = DispatchGroup()
  for _ in 0..<2 {
    DispatchQueue.global().async(group: group) {
      begun.add()
      // Neither returns before both have a worker.
      #expect(awaitValue { begun.value == 2 })
    }
  }
  #expect(empties(group))
}
