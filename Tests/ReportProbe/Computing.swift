import ConcourseEvents
import Glibc

/// An item that computes without end, and holds a second queue meanwhile, for the time that a queue is held.
enum Computing {
  static let outer = DispatchQueue(label: "com.example.outer")
  static let inner = DispatchQueue(label: "com.example.inner")
  static let next = DispatchQueue(label: "com.example.next")

  static func run() -> Never {
    outer.async {
      print("began at \(DispatchTime.now().uptimeNanoseconds) ns")
      fflush(nil)
      // The worker keeps this queue, so the monitor looks at it.
      next.async {}
      inner.sync { while true {} }
    }
    while true { pause() }
  }
}
