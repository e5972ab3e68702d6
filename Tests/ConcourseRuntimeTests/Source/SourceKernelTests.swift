import Glibc
import Testing

@testable import ConcourseRuntime

extension Engine {
  /// Events that would be lost, or told twice, between a source and the kernel.
  @Suite("Sources and the kernel", .serialized)
  struct SourceKernelTests {
    @Test("S97 a timer that fired while it had no handler is not replayed when it gets one")
    func firedUnheard() {
      let queue = DispatchQueue(label: "timers")
      let reports = Reports()
      let once = DispatchSource.makeTimerSource(queue: queue)
      let timer = DispatchSource.makeTimerSource(queue: queue)
      let start = DispatchTime.now()
      once.schedule(deadline: start)
      timer.schedule(deadline: start, repeating: .milliseconds(200))
      once.activate()
      timer.activate()
      // Both have fired, and been heard by nobody, when later ones of the same queue have been heard.
      let later = DispatchSemaphore(value: 0)
      queue.asyncAfter(deadline: start + .milliseconds(450)) { later.signal() }
      #expect(comes(later))
      once.setEventHandler { reports.note(1000) }
      timer.setEventHandler { reports.note(timer.data) }
      #expect(reports.comes(1))
      timer.cancel()
      queue.sync {}
      // Unless the machine slept over several intervals since, it was one.
      let elapsed = DispatchTime.now().uptimeNanoseconds - start.uptimeNanoseconds
      let first = reports.all[0]
      #expect(first == 1 || elapsed > 800_000_000 && first < 1000)
      #expect(!reports.all.contains(1000))
      once.cancel()
    }
  }
}
