import ConcourseEvents
import Glibc

/// Labels and a thread's name that try to control the terminal of the one who looks.
enum Hostile {
  static let sequence =
    "\u{1B}]0;OWNED\u{7}\u{1B}[31m\nDeadlock: forged\r\u{9B}2J\u{202E}\u{2028}</script><b>\"'&\\"

  static func run() -> Never {
    let (first, second) = (DispatchQueue(label: "evil" + sequence), DispatchQueue(label: "other" + sequence))
    first.async { while true { pause() } }
    second.async { first.sync {} }
    startThread("x\u{1B}[2J\n\u{7}") { DispatchSemaphore(value: 0).wait() }
    let timer = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "ticks" + sequence))
    timer.setEventHandler {}
    timer.schedule(deadline: .now(), repeating: .milliseconds(5))
    timer.activate()
    print("ready")
    fflush(nil)
    while true { withExtendedLifetime(timer) { _ = pause() } }
  }
}
