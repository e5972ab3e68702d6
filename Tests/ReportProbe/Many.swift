import ConcourseEvents
import Glibc

/// More threads and objects than a reading may compare with one another: each thread waits for a semaphore of its own, and
/// most semaphores, queues and groups are idle.
enum Many {
  nonisolated(unsafe) private static var kept: [AnyObject] = []

  static func run(_ count: Int) -> Never {
    for number in 0..<count {
      kept.append(DispatchQueue(label: "idle \(number)"))
      kept.append(DispatchSemaphore(value: 0))
      kept.append(DispatchGroup())
    }
    for _ in 0..<count / 20 {
      let semaphore = DispatchSemaphore(value: 0)
      kept.append(semaphore)
      startThread("waits") { semaphore.wait() }
    }
    print("ready")
    fflush(nil)
    while true { pause() }
  }
}
