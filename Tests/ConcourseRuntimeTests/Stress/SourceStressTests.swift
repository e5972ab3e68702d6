import Glibc
import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

extension Engine {
  @Suite("Stress: sources")
  struct SourceStressTests {
    /// How often handlers of one source were called, and whether they broke a promise.
    private final class Record: Sendable {
      let running = Tally()
      let events = Tally()
      let cancelled = Tally()
      let broken = Tally()

      /// An event handler's body.
      func event() {
        if running.add() != 1 || cancelled.value > 0 { broken.add() }
        events.add()
        running.add(-1)
      }

      /// A cancel handler's body.
      func end() {
        if running.add() != 1 || cancelled.add() != 1 { broken.add() }
        running.add(-1)
      }
    }

    private static func pipe() -> (reader: Int32, writer: Int32) {
      var ends: [Int32] = [0, 0]
      #expect(Glibc.pipe(&ends) == 0)
      for end in ends { _ = fcntl(end, F_SETFL, O_NONBLOCK) }
      return (ends[0], ends[1])
    }

    private static func drain(_ descriptor: Int32) {
      var bytes = [UInt8](repeating: 0, count: 64)
      _ = read(descriptor, &bytes, bytes.count)
    }

    @Test(
      "traps 1 to 3: sources on duplicates of few pipes, made, suspended, cancelled and dropped at random")
    func descriptors() {
      let pipes = (0..<4).map { _ in Self.pipe() }
      let rounds = Sanitizer.shrunk(300)
      let group = DispatchGroup()
      let broken = Tally()
      let owed = Tally()
      let queues = [
        DispatchQueue(label: "serial"), DispatchQueue(label: "concurrent", attributes: .concurrent),
        .global(qos: .utility),
      ]
      let ended = onThreads(4) { thread in
        var dice = Seed.dice(thread, of: "descriptors")
        for _ in 0..<rounds {
          let pipe = pipes.randomElement(using: &dice)!
          let isReader = !dice.hits(oneIn: 3)
          let descriptor = dup(isReader ? pipe.reader : pipe.writer)
          let record = Record()
          let queue = queues.randomElement(using: &dice)!
          let source: any DispatchSourceProtocol =
            isReader
            ? DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
            : DispatchSource.makeWriteSource(fileDescriptor: descriptor, queue: queue)
          source.setEventHandler {
            record.event()
            if isReader { Self.drain(descriptor) }
          }
          group.enter()
          owed.add()
          source.setCancelHandler {
            record.end()
            broken.add(record.broken.value)
            // Another thread's duplicate may reuse the number at once.
            close(descriptor)
            owed.add(-1)
            group.leave()
          }
          source.activate()
          for _ in 0..<Int.random(in: 0..<4, using: &dice) {
            source.suspend()
            if dice.hits(oneIn: 2) { _ = write(pipe.writer, "x", 1) }
            if dice.hits(oneIn: 4) { source.cancel() }
            source.resume()
          }
          _ = write(pipe.writer, "x", 1)
          if dice.hits(oneIn: 3) { sched_yield() }
          source.cancel()
          if dice.hits(oneIn: 2) { source.cancel() }
        }
      }
      #expect(ended && empties(group))
      #expect(owed.value == 0)
      #expect(broken.value == 0)
      for pipe in pipes {
        close(pipe.reader)
        close(pipe.writer)
      }
    }

    @Test(
      "S111 a source that is suspended and resumed while others of its pipe come and go misses no byte"
    )
    func nothingIsOverlooked() {
      let (reader, writer) = Self.pipe()
      let count = Sanitizer.shrunk(2000)
      let got = DispatchSemaphore(value: 0)
      let queue = DispatchQueue(label: "reader")
      let source = DispatchSource.makeReadSource(fileDescriptor: reader, queue: queue) as! DispatchSource
      source.setEventHandler {
        var bytes = [UInt8](repeating: 0, count: 64)
        let length = read(reader, &bytes, 1)
        for _ in 0..<max(length, 0) { got.signal() }
      }
      source.activate()
      let stop = Shared(false)
      let disturbed = DispatchGroup()
      for thread in 0..<2 {
        disturbed.enter()
        startThread {
          var dice = Seed.dice(thread, of: "nothingIsOverlooked")
          while !stop.value {
            if dice.hits(oneIn: 2) {
              source.suspend()
              source.resume()
            } else {
              // The same number, hence the same registration. It only observes.
              let other = DispatchSource.makeReadSource(fileDescriptor: reader)
              let gone = DispatchSemaphore(value: 0)
              other.setEventHandler {}
              other.setCancelHandler { gone.signal() }
              other.activate()
              other.cancel()
              guard comes(gone) else { break }
            }
          }
          disturbed.leave()
        }
      }
      var dice = Seed.dice()
      var lost = false
      var sent = 0
      while sent < count && !lost {
        let burst = Int.random(in: 1...4, using: &dice)
        for _ in 0..<burst { #expect(write(writer, "x", 1) == 1) }
        for _ in 0..<burst where !lost { lost = !comes(got) }
        sent += burst
      }
      #expect(!lost)
      stop.change { $0 = true }
      #expect(empties(disturbed))
      source.setCancelHandler { got.signal() }
      source.cancel()
      #expect(comes(got))
      close(reader)
      close(writer)
    }

    @Test(
      "S89, S91 timers set, suspended and cancelled from many threads: each fires at its last setting"
    )
    func timers() {
      let count = 16
      let records = (0..<count).map { _ in Record() }
      let fired = (0..<count).map { _ in DispatchSemaphore(value: 0) }
      let queues = (0..<count).map { _ in DispatchQueue(label: "timer") }
      let timers = (0..<count).map { number in
        let timer = DispatchSource.makeTimerSource(queue: queues[number]) as! DispatchSource
        timer.setEventHandler {
          records[number].event()
          if timer.data == 0 { records[number].broken.add() }
          fired[number].signal()
        }
        timer.activate()
        return timer
      }
      let ended = onThreads(4) { thread in
        var dice = Seed.dice(thread, of: "timers")
        for _ in 0..<Sanitizer.shrunk(2000) {
          let timer = timers.randomElement(using: &dice)!
          let delay = DispatchTimeInterval.microseconds(Int.random(in: -50..<2000, using: &dice))
          let interval = DispatchTimeInterval.microseconds(Int.random(in: 20..<500, using: &dice))
          let leeway = DispatchTimeInterval.microseconds(Int.random(in: 0..<200, using: &dice))
          switch Int.random(in: 0..<5, using: &dice) {
          case 0: timer.schedule(deadline: .now() + delay, repeating: interval, leeway: leeway)
          case 1: timer.schedule(wallDeadline: .now() + delay, leeway: leeway)
          case 2: timer.schedule(deadline: .distantFuture)
          case 3:
            timer.suspend()
            timer.resume()
          default: timer.schedule(deadline: .now() + delay, leeway: leeway)
          }
        }
      }
      #expect(ended)
      let over = DispatchGroup()
      for (number, timer) in timers.enumerated() {
        // Disarmed, and any call under way has ended.
        timer.schedule(deadline: .distantFuture)
        queues[number].sync {}
        while fired[number].wait(timeout: .now()) == .success {}
        let before = records[number].events.value
        timer.schedule(deadline: .now() + .milliseconds(1))
        #expect(comes(fired[number]))
        #expect(records[number].events.value == before + 1)
        over.enter()
        timer.setCancelHandler {
          records[number].end()
          over.leave()
        }
      }
      // Cancelled while others program them.
      let raced = onThreads(3) { thread in
        for timer in timers {
          if thread == 0 {
            timer.cancel()
          } else {
            timer.schedule(deadline: .now(), repeating: .microseconds(50))
          }
        }
      }
      #expect(raced && empties(over))
      for record in records { #expect(record.broken.value == 0 && record.cancelled.value == 1) }
      #expect(timers.allSatisfy { $0.isCancelled })
    }

    @Test(
      "S112, trap 11: signals to any thread while sources come and go: the remaining source counts each once"
    )
    func signals() {
      // A real-time signal: no other code uses it.
      let signal: Int32 = 40
      let total = Shared<UInt>(0)
      let came = DispatchSemaphore(value: 0)
      let source = DispatchSource.makeSignalSource(signal: signal, queue: DispatchQueue(label: "signals"))
      source.setEventHandler {
        total.change { $0 += source.data }
        came.signal()
      }
      source.activate()
      let perThread = Sanitizer.shrunk(1000)
      let ended = onThreads(3) { thread in
        var dice = Seed.dice(thread, of: "signals")
        unblock(signal)
        for _ in 0..<perThread {
          raise(signal)
          guard dice.hits(oneIn: 4) else { continue }
          let other = DispatchSource.makeSignalSource(signal: signal)
          other.setEventHandler {}
          other.activate()
          if dice.hits(oneIn: 2) { other.cancel() }
        }
      }
      #expect(ended)
      while total.value < 3 * perThread { guard comes(came) else { break } }
      #expect(total.value == UInt(3 * perThread))
      source.setCancelHandler { came.signal() }
      source.cancel()
      #expect(comes(came))
    }

    @Test("S101 sources dropped while they fire: nothing is called afterwards that holds what is gone")
    func dropped() {
      let rounds = Sanitizer.shrunk(400)
      let ended = onThreads(3) { thread in
        var dice = Seed.dice(thread, of: "dropped")
        for _ in 0..<rounds {
          let (reader, writer) = Self.pipe()
          let queue = DispatchQueue(label: "dropped")
          do {
            let source = DispatchSource.makeReadSource(fileDescriptor: reader, queue: queue)
            source.setEventHandler {}
            source.activate()
            _ = write(writer, "x", 1)
            let timer = DispatchSource.makeTimerSource(queue: queue)
            timer.schedule(deadline: .now(), repeating: .microseconds(10))
            timer.setEventHandler {}
            timer.activate()
            if dice.hits(oneIn: 2) { sched_yield() }
          }
          // The kernel has released the descriptors: their numbers may be reused at once.
          close(reader)
          close(writer)
        }
      }
      #expect(ended)
    }
  }
}
