import ConcourseEvents
import Glibc

/// Programs that look stuck at each single look, but are not.
enum Healthy {
  private static func announce() {
    print("ready")
    fflush(nil)
  }

  /// A queue that is suspended for most of the time, and runs its items in between.
  static func pause() -> Never {
    let queue = DispatchQueue(label: "pausing")
    announce()
    while true {
      queue.suspend()
      for _ in 0..<3 { queue.async {} }
      usleep(20_000)
      queue.resume()
      queue.sync {}
    }
  }

  private static let batches = DispatchQueue(label: "batches")
  private static let stream = DispatchQueue(label: "stream")
  private static let inFlight = DispatchSemaphore(value: 16)

  private static func compute() {
    let end = DispatchTime.now().uptimeNanoseconds + 2_000_000
    while DispatchTime.now().uptimeNanoseconds < end {}
  }

  /// Queues that always have another item, of 2 ms: one gets many at a time, one has few in flight, which only their nodes
  /// tell apart.
  static func work() -> Never {
    startThread("batches") {
      while true {
        let group = DispatchGroup()
        for _ in 0..<500 { batches.async(group: group) { compute() } }
        group.wait()
      }
    }
    announce()
    while true {
      inFlight.wait()
      stream.async {
        compute()
        inFlight.signal()
      }
    }
  }

  // SAFETY: only the main thread uses it.
  nonisolated(unsafe) private static var source: (any DispatchSourceSignal)?

  /// A signal that all threads block, so that one of the engine's receives it.
  static func receive() -> Never {
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGUSR2)
    pthread_sigmask(SIG_BLOCK, &signals, nil)
    source = DispatchSource.makeSignalSource(signal: SIGUSR2, queue: batches)
    source!.setEventHandler {}
    source!.activate()
    announce()
    while true { sleep(1000) }
  }

  private static func ask() {
    DispatchQueue.global().async {
      usleep(10_000)
      ask()
    }
  }

  /// More requests than the pool may have threads, each of which waits for a short answer.
  static func answer() -> Never {
    for _ in 0..<200 { ask() }
    announce()
    while true { sleep(1000) }
  }
}
