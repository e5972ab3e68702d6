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
          #expect(awaitValue { Runtime.shared.bands[0].counters.snapshot.parked > 0 })
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
            let now = Runtime.shared.bands[0].counters.snapshot
            return now.active == 0 && now.searching == 0 && now.parked == now.threads
          })
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
