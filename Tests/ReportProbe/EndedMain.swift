import ConcourseEvents
import Glibc

/// A process that goes on after its main thread has ended.
enum EndedMain {
  static func run() -> Never {
    let queue = DispatchQueue(label: "com.example.after-main")
    let begun = DispatchSemaphore(value: 0)
    queue.async {
      begun.signal()
      while true { pause() }
    }
    begun.wait()
    startThread("in-sync") { queue.sync {} }
    print("ready")
    fflush(nil)
    pthread_exit(nil)
  }
}
