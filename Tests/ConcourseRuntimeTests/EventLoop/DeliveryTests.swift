import Glibc
import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

extension Crash {
  @Suite("Deliveries of events")
  struct DeliveryTests {
    @Test("trap 19: a worker that blocks while it delivers an event is replaced")
    func blockedDelivery() async {
      await #expect(processExitsWith: .success) {
        var (event, gate): ([Int32], [Int32]) = ([0, 0], [0, 0])
        #expect(pipe(&event) == 0 && pipe(&gate) == 0)
        let (begun, ended) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let (opened, isWorker) = (gate[0], Shared(false))
        let watch = FileWatch(
          descriptor: event[0], interest: .read,
          owner: BlockingOwner {
            isWorker.change { $0 = WorkerThread.delivering != nil }
            begun.signal()
            // A call that the pool does not know.
            var byte: UInt8 = 0
            #expect(read(opened, &byte, 1) == 1)
            ended.signal()
          })
        watch.install()
        // Some events come to the loop's own thread.
        for _ in 0..<100 where !isWorker.value {
          DispatchQueue.global().async {}
          #expect(awaitValue { defaultBands.contains { $0.counters.snapshot.parked > 0 } })
          #expect(write(event[1], "x", 1) == 1)
          #expect(comes(begun))
          // The item is posted while the worker counts as searching.
          let open = gate[1]
          DispatchQueue.global().async { #expect(write(open, "x", 1) == 1) }
          #expect(comes(ended))
          var byte: UInt8 = 0
          #expect(read(event[0], &byte, 1) == 1)
          watch.rearm()
        }
        #expect(isWorker.value)
        #expect(
          awaitValue {
            defaultBands.allSatisfy {
              let now = $0.counters.snapshot
              return now.active == 0 && now.searching == 0 && now.parked == now.threads
            }
          })
        watch.remove()
      }
    }

    /// While all workers are busy, the loop's thread collects an event. When a worker waits for events again, the thread
    /// does not wait beside it: the kernel would wake the thread, which would have to wake the worker.
    @Test("the loop's own thread leaves events to a worker that waits")
    func workerFirst() async {
      await #expect(processExitsWith: .success) {
        // On a large pretended machine, all workers at once would be busy for long.
        unsetenv("CONCOURSE_TOPOLOGY")
        var ends: [Int32] = [0, 0]
        #expect(pipe(&ends) == 0 && write(ends[1], "x", 1) == 1)
        let (come, isBusy, isWorker) = (DispatchSemaphore(value: 0), Shared(false), Shared(false))
        let watch = FileWatch(
          descriptor: ends[0], interest: .read,
          owner: BlockingOwner {
            isWorker.change { $0 = WorkerThread.delivering != nil }
            come.signal()
          })
        watch.install()
        #expect(comes(come))
        // The thread waits in the kernel before the worker does if its nap is over early.
        var isLeft = false
        for _ in 0..<1_000 where !isLeft {
          isBusy.change { $0 = true }
          for _ in 0..<PoolSize.width { DispatchQueue.global().async { while isBusy.value {} } }
          watch.rearm()
          #expect(comes(come))
          isBusy.change { $0 = false }
          isLeft = awaitValue(nanoseconds: 20_000_000) {
            EventLoop.shared.seat.load(ordering: .relaxed) == EventLoop.Seat.takenAndAwaited
          }
        }
        #expect(isLeft)
        watch.rearm()
        #expect(comes(come))
        #expect(isWorker.value)
        watch.remove()
      }
    }
  }
}

private final class BlockingOwner: FileWatchOwner {
  private let body: @Sendable () -> Void
  init(_ body: @escaping @Sendable () -> Void) { self.body = body }
  func fileIsReady(_ watch: FileWatch) { body() }
}

/// The bands of normal priority, one for each shard.
private var defaultBands: [Band] { Runtime.shared.bands.filter { !$0.isLowered } }
