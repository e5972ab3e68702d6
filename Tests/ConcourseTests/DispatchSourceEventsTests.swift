import Concourse
import Glibc
import Testing

/// Events as asynchronous sequences.
@Suite("DispatchSourceEvents", .timeLimit(.minutes(10)))
struct DispatchSourceEventsTests {
  @Test("bytes of a pipe arrive as events, and cancelling the source ends the sequence")
  func pipeEvents() async {
    var ends: [Int32] = [0, 0]
    #expect(pipe(&ends) == 0)
    let (reader, writer) = (ends[0], ends[1])
    let source = DispatchSource.makeReadSource(fileDescriptor: reader)
    source.setCancelHandler { close(reader) }
    var lengths: [UInt] = []
    #expect(write(writer, "12345", 5) == 5)
    for await length in source.events {
      lengths.append(length)
      var bytes = [UInt8](repeating: 0, count: 16)
      let count = read(reader, &bytes, bytes.count)
      if count > 3 {
        #expect(write(writer, "678", 3) == 3)
      } else if count > 0 {
        close(writer)
      } else {
        source.cancel()
      }
    }
    #expect(lengths == [5, 3, 0])
    #expect(source.isCancelled)
  }

  @Test("ticks count what a slow body missed")
  func ticks() async {
    var total: UInt = 0
    let start = DispatchTime.now()
    for await count in DispatchSource.ticks(every: .milliseconds(5)) {
      total += count
      // As long as three ticks.
      if total < 20 { usleep(15_000) } else { break }
    }
    let elapsed = DispatchTime.now().uptimeNanoseconds - start.uptimeNanoseconds
    #expect(total >= 20)
    #expect(elapsed >= UInt64(total) * 5_000_000, "no tick before its time")
  }

  @Test("cancelling the task ends the sequence and runs the cancel handler")
  func cancelledTask() async {
    let (cancelled, announce) = AsyncStream.makeStream(of: Void.self)
    let source = DispatchSource.makeUserDataAddSource()
    source.setCancelHandler { announce.finish() }
    let events = source.events
    let task = Task { () -> UInt in
      var sum: UInt = 0
      for await value in events { sum += value }
      return sum
    }
    task.cancel()
    #expect(await task.value == 0)
    for await _ in cancelled {}
    #expect(source.isCancelled)
  }

  @Test("leaving the loop cancels the source")
  func left() async {
    let (cancelled, announce) = AsyncStream.makeStream(of: Void.self)
    let source = DispatchSource.makeUserDataOrSource()
    source.setCancelHandler { announce.finish() }
    source.or(data: 6)
    for await value in source.events {
      #expect(value == 6)
      break
    }
    for await _ in cancelled {}
    #expect(source.isCancelled)
  }

  @Test("ticks that no task awaits cost nothing, and each iteration counts from its own start")
  func ticksUnused() async {
    let ticks = DispatchSource.ticks(every: .milliseconds(2))
    for _ in 0..<2 {
      for await count in ticks {
        #expect(count >= 1)
        break
      }
    }
    _ = DispatchSource.ticks(every: .seconds(1))
  }

  @Test("the sequence of an already cancelled source is empty")
  func alreadyCancelled() async {
    let source = DispatchSource.makeUserDataAddSource()
    source.cancel()
    for await _ in source.events { Issue.record("an event of a cancelled source") }
  }
}
