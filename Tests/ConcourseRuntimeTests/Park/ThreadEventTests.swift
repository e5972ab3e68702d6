import Testing

@testable import ConcourseRuntime

extension Engine {
  @Suite("ThreadEvent")
  struct ThreadEventTests {
    @Test("a signal before the wait is found")
    func signalFirst() {
      let event = ThreadEvent()
      let before = event.isSet
      event.signal()
      event.wait(for: .sync, nil)
      let parked = event.park(until: .immediate)
      event.reset()
      let after = event.isSet
      #expect([before, parked, after] == [false, true, false])
    }

    @Test("a wait that timed out leaves the event usable")
    func timeout() {
      let event = ThreadEvent()
      let start = Clock.uptime()
      let early = event.park(until: .uptime(start + 5_000_000))
      #expect(!early)
      #expect(Clock.uptime() >= start + 5_000_000)
      let past = event.park(until: .uptime(start))
      #expect(!past)
      event.signal()
      let late = event.park(until: .never)
      #expect(late)
    }

    @Test("pairs of threads: every waiter is released, by sleep and by spin")
    func pairs() {
      let rounds = Sanitizer.shrunk(2000)
      let cells = (0..<4).map { _ in Cell() }
      let ended = onThreads(8) { thread in
        let cell = cells[thread / 2]
        for round in 0..<rounds {
          if thread % 2 == 0 {
            cell.ping.wait(for: .sync, nil)
            cell.ping.reset()
            #expect(cell.number.value == round + 1)
            cell.pong.signal()
          } else {
            cell.number.value = round + 1
            cell.ping.signal()
            if round % 3 == 0 { _ = cell.pong.park(until: .never) } else { cell.pong.wait(for: .sync, nil) }
            cell.pong.reset()
          }
        }
      }
      #expect(ended)
    }

    @Test("signals that race with deadlines are taken or kept, never lost")
    func racingDeadlines() {
      let rounds = Sanitizer.shrunk(2000)
      let cell = Cell()
      let ended = onThreads(2) { thread in
        var dice = Seed.dice(thread, of: "racingDeadlines")
        for _ in 0..<rounds {
          if thread == 0 {
            let deadline = Clock.uptime() + UInt64.random(in: 0..<60_000, using: &dice)
            if !cell.ping.park(until: .uptime(deadline)) {
              _ = cell.ping.park(until: .never)
            }
            cell.ping.reset()
            cell.pong.signal()
          } else {
            let until = Clock.uptime() + UInt64.random(in: 0..<60_000, using: &dice)
            while Clock.uptime() < until { Processor.pause() }
            cell.ping.signal()
            cell.pong.wait(for: .sync, nil)
            cell.pong.reset()
          }
        }
      }
      #expect(ended)
    }
  }
}

private final class Cell: Sendable {
  let ping = ThreadEvent()
  let pong = ThreadEvent()
  let number = Unprotected(0)
}
