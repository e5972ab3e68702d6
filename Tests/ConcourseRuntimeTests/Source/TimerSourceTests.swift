import Glibc
import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

extension Engine {
  @Suite("Timer sources")
  struct TimerSourceTests {
    @Test("a timer set to a time in the past fires once for each setting, from its handler too")
    func again() {
      let fired = Shared(0)
      let done = DispatchSemaphore(value: 0)
      let timer = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "timer"))
      timer.schedule(deadline: .now())
      timer.setEventHandler {
        let count = Int((timer as! DispatchSource).data)
        fired.change { $0 += count }
        if fired.value == 2000 { done.signal() } else { timer.schedule(deadline: .now()) }
      }
      timer.activate()
      #expect(comes(done))
      // The kernel's timer does not report it again.
      let later = DispatchSemaphore(value: 0)
      DispatchQueue.global().asyncAfter(.milliseconds(20)) { later.signal() }
      #expect(comes(later))
      #expect(fired.value == 2000)
      timer.cancel()
    }

    @Test("a time in the past, then one in the future: only the second counts if the handler has not run")
    func replaced() {
      let fired = Shared(0)
      let queue = DispatchQueue(label: "timer")
      let timer = DispatchSource.makeTimerSource(queue: queue)
      timer.setEventHandler { fired.change { $0 += 1 } }
      timer.schedule(deadline: .distantFuture)
      timer.activate()
      for _ in 0..<100 {
        queue.sync {
          timer.schedule(deadline: .now())
          timer.schedule(deadline: .now() + 3600)
        }
        queue.sync {}
      }
      #expect(fired.value == 0)
      queue.sync {
        timer.schedule(deadline: .now() + 3600)
        timer.schedule(deadline: .now())
      }
      while fired.value == 0 { queue.sync {} }
      #expect(fired.value == 1)
      timer.cancel()
    }

    @Test("a repeating timer that begins in the past goes on, and counts what it has missed")
    func repeating() {
      let counts = Reports()
      let timer = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "timer"))
      let start = Clock.uptime()
      timer.schedule(
        deadline: DispatchTime(uptimeNanoseconds: start - 10_000_000), repeating: .milliseconds(1))
      let came = DispatchSemaphore(value: 0)
      timer.setEventHandler {
        counts.note((timer as! DispatchSource).data)
        came.signal()
      }
      timer.activate()
      for _ in 0..<3 { #expect(comes(came)) }
      // Before the time is read: later firings count after it.
      timer.cancel()
      let elapsed = (Clock.uptime() - start) / 1_000_000 + 11
      #expect(counts.all[0] >= 11)
      #expect(counts.all.reduce(0, +) <= UInt(elapsed) + 1)
    }

    @Test("S97 a time set after the handler reaches it, whatever happens to the time before")
    func afterHandler() {
      let queue = DispatchQueue(label: "timer")
      for round in 0..<3000 {
        let came = DispatchSemaphore(value: 0)
        let timer = DispatchSource.makeTimerSource(queue: queue)
        timer.schedule(deadline: .now())
        timer.activate()
        // The visit that finds no handler is pending, under way, or over.
        for _ in 0..<round % 50 { Processor.pause() }
        timer.setEventHandler { came.signal() }
        timer.schedule(deadline: .now())
        guard comes(came) else {
          Issue.record("lost in round \(round)")
          break
        }
        timer.cancel()
      }
    }
  }
}
