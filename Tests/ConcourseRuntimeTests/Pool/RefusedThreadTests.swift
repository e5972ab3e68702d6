import Glibc
import Testing

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

/// Two workers, and no further thread.
private func useTwoThreads() {
  SystemScript.refuse(.thread, with: EAGAIN, after: 2)
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
  #expect(!Runtime.shared.monitor.hasThread)
}
