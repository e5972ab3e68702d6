import ConcourseEvents
import Glibc

/// Queues with work at a steady pace, for the tests of `concourse top`: each tick of a timer brings items.
enum Busy {
  static let images = DispatchQueue(label: "com.example.images")
  static let thumbnails = DispatchQueue(label: "com.example.thumbnails", attributes: .concurrent, target: nil)
  static let wide = DispatchQueue(label: "画像の読み込みと縮小と保存をするための列 picture queue")
  static let odd = DispatchQueue(label: "bell\u{7} escape\u{1B}[31m newline\n")
  static let log = DispatchQueue(
    label: "com.example.a-label-that-is-much-longer-than-a-screen-of-eighty-columns-can-show-in-one-row")
  static let ticks = DispatchQueue(label: "ticks", qos: .userInitiated, attributes: [], target: nil)
  nonisolated(unsafe) static let timer = DispatchSource.makeTimerSource(queue: ticks)
  static let never = DispatchSemaphore(value: 0)
  static let paused = DispatchQueue(label: "paused")

  static func compute(_ microseconds: UInt64) {
    let end = DispatchTime.now().uptimeNanoseconds + microseconds * 1000
    while DispatchTime.now().uptimeNanoseconds < end {}
  }

  static func tick() {
    for _ in 0..<3 { images.async { compute(1000) } }
    for _ in 0..<8 { thumbnails.async { compute(50) } }
    wide.async { compute(300) }
    odd.async {}
    for _ in 0..<40 { log.async { compute(2) } }
    DispatchQueue.global().async { images.sync { compute(10) } }
  }

  static func run() -> Never {
    for _ in 0..<2 { startThread("in-semaphore") { never.wait() } }
    if CommandLine.arguments.contains("paused") {
      paused.suspend()
      for _ in 0..<3 { paused.async {} }
    }
    timer.setEventHandler { tick() }
    timer.schedule(deadline: .now(), repeating: .milliseconds(10))
    timer.activate()
    print("ready")
    fflush(nil)
    while true { pause() }
  }
}

/// Queues without a label, for the tests of their names.
enum Nameless {
  @inline(never)
  static func makeCache() -> DispatchQueue { DispatchQueue(label: "") }

  @inline(never)
  static func makeLoader() -> DispatchQueue { DispatchConcurrentQueue(label: "") }

  static func run() -> Never {
    for queue in [makeCache(), makeLoader(), DispatchQueue(label: "com.example.named")] {
      let ended = DispatchGroup()
      queue.async(group: ended) {}
      ended.wait()
    }
    exit(0)
  }
}
