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
