import ConcourseEvents
import Glibc

/// A process that goes on after its main thread has ended.
enum EndedMain {
  /// Its main thread ends at SIGUSR1. Items go on.
  static func runUntilSignal() -> Never {
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGUSR1)
    pthread_sigmask(SIG_BLOCK, &signals, nil)
    Hierarchy.again(0)
    print("ready")
    fflush(nil)
    var number: Int32 = 0
    sigwait(&signals, &number)
    pthread_exit(nil)
  }

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
