import Glibc
import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

extension Engine {
  @Suite("DispatchIO on pipes, sockets and terminals")
  struct StreamIOTests {
    @Test("S126, S133 reading a pipe while it is filled, to its end")
    func pipe() {
      let pipe = Ends.pipe()
      let channel = TestChannel(.stream, pipe.reader)
      #expect(fcntl(pipe.reader, F_GETFL) & O_NONBLOCK != 0)
      channel.io.setLimit(lowWater: 1)
      let (first, second) = (channel.read(8), channel.read())
      pipe.send("hello")
      #expect(first.next() == [Call(false, "hello")])
      pipe.send("you there")
      #expect(first.finished() == [Call(false, "hello"), Call(true, "you")])
      #expect(second.next() == [Call(false, " there")])
      pipe.closeWriter()
      #expect(second.finished() == [Call(false, " there"), Call(true, [])])
      channel.end()
      #expect(fcntl(pipe.reader, F_GETFL) & O_NONBLOCK == 0)
    }

    @Test("S133 a descriptor that was non-blocking stays so")
    func nonBlocking() {
      let pipe = Ends.pipe()
      #expect(fcntl(pipe.reader, F_SETFL, O_NONBLOCK) == 0)
      TestChannel(.stream, pipe.reader).end()
      #expect(fcntl(pipe.reader, F_GETFL) & O_NONBLOCK != 0)
    }

    @Test("a megabyte through buffers of the size of a pipe's, a socket's and a terminal's")
    func volume() {
      for (ends, count) in [(Ends.pipe(), 1_000_000), (Ends.sockets(), 1_000_000)] {
        let (reader, writer) = (TestChannel(.stream, ends.reader), TestChannel(.stream, ends.writer))
        let bytes = pattern(count)
        let (read, written) = (reader.read(count), writer.write(bytes))
        #expect(written.finished() == [Call(true, nil)])
        #expect(read.finished().last?.done == true)
        #expect(read.bytes == bytes)
        reader.end()
        writer.end()
      }
    }

    @Test("trap 17: reading and writing one socket at once")
    func both() {
      let sockets = Ends.sockets()
      let (left, right) = (TestChannel(.stream, sockets.reader), TestChannel(.stream, sockets.writer))
      let bytes = pattern(400_000)
      // Both directions are full before anything is read.
      let waiting = left.read(bytes.count)
      let (there, back) = (left.write(bytes), right.write(bytes))
      let arriving = right.read(bytes.count)
      #expect(there.finished().last == Call(true, nil))
      #expect(back.finished().last == Call(true, nil))
      #expect(waiting.finished().last?.done == true)
      #expect(arriving.finished().last?.done == true)
      #expect(waiting.bytes == bytes && arriving.bytes == bytes)
      left.end()
      right.end()
    }

    @Test("S126 a terminal, line by line")
    func terminal() {
      let terminal = Ends.terminal()
      let channel = TestChannel(.stream, terminal.reader)
      channel.io.setLimit(lowWater: 1)
      let calls = channel.read(12)
      terminal.send("first\n")
      #expect(calls.next() == [Call(false, "first\n")])
      terminal.send("second\n")
      #expect(calls.finished().last == Call(true, "second"))
      #expect(channel.write(Array("answer".utf8)).finished() == [Call(true, nil)])
      channel.end()
    }

    @Test("S125 a write whose reader goes away fails with the unwritten rest")
    func brokenPipe() {
      let before = signal(SIGPIPE, SIG_IGN)
      defer { signal(SIGPIPE, before) }
      let pipe = Ends.pipe()
      let channel = TestChannel(.stream, pipe.writer)
      let calls = channel.write(pattern(200_000))
      // The pipe is full: the write waits for room.
      var room = pollfd(fd: pipe.writer, events: Int16(POLLOUT), revents: 0)
      while poll(&room, 1, 0) != 0 { Processor.yield() }
      pipe.closeReader()
      let end = calls.finished()
      #expect(end.count == 1 && end[0].error == EPIPE)
      let rest = end[0].bytes ?? []
      #expect(!rest.isEmpty && rest.count < 200_000)
      #expect(rest == Array(pattern(200_000).suffix(rest.count)))
      #expect(channel.write([1]).finished() == [Call(true, [1], EPIPE)])
      channel.end()
    }

    @Test("S127 strict intervals call the handler even without data")
    func strictInterval() {
      let pipe = Ends.pipe()
      let channel = TestChannel(.stream, pipe.reader)
      channel.io.setInterval(interval: .milliseconds(5), flags: .strictInterval)
      let calls = channel.read(5)
      #expect(calls.next().last == Call(false, []))
      pipe.send("ab")
      while calls.next().last == Call(false, []) {}
      #expect(calls.all.last == Call(false, "ab"))
      pipe.send("cde")
      #expect(calls.finished().last?.done == true)
      #expect(calls.bytes == Array("abcde".utf8))
      channel.end()
    }

    @Test(
      "S127 an interval that is not strict calls the handler only with enough data; never and 0 turn it off")
    func laxInterval() {
      let pipe = Ends.pipe()
      let channel = TestChannel(.stream, pipe.reader)
      channel.io.setLimit(lowWater: 4)
      channel.io.setInterval(interval: .milliseconds(1))
      let lax = channel.read(8)
      pipe.send("abc")
      // A second operation with a strict interval shows that time has passed.
      let other = Ends.pipe()
      let clock = TestChannel(.stream, other.reader)
      clock.io.setInterval(interval: .milliseconds(2), flags: .strictInterval)
      let ticks = clock.read(1)
      for _ in 0..<5 { _ = ticks.next() }
      #expect(lax.all.isEmpty)
      pipe.send("de")
      #expect(lax.next() == [Call(false, "abcde")])
      for interval in [DispatchTimeInterval.never, .seconds(0), .seconds(-1)] {
        clock.io.setInterval(interval: interval, flags: .strictInterval)
        #expect(clock.io.channel.pacing == nil)
      }
      clock.io.close(flags: .stop)
      #expect(ticks.finished().last == Call(true, nil, ECANCELED))
      channel.io.close(flags: .stop)
      #expect(lax.finished().last == Call(true, nil, ECANCELED))
      #expect(clock.cleanup() == 0)
      #expect(channel.cleanup() == 0)
    }

    @Test("S122 one-shot reads wait for the first byte and take the available bytes")
    func readOnce() {
      let pipe = Ends.pipe()
      func read(_ count: Int) -> Calls {
        let calls = Calls()
        DispatchIO.read(fromFileDescriptor: pipe.reader, maxLength: count, runningHandlerOn: calls.queue) {
          // The client has the descriptor back.
          #expect(fcntl(pipe.reader, F_GETFL) & O_NONBLOCK == 0)
          calls.handler(true, $0, $1)
        }
        return calls
      }
      let waiting = read(1000)
      pipe.send("hello")
      #expect(waiting.finished() == [Call(true, "hello")])
      pipe.send("again")
      #expect(read(3).finished() == [Call(true, "aga")])
      #expect(read(.max).finished() == [Call(true, "in")])
      #expect(read(0).finished() == [Call(true, [])])
      pipe.closeWriter()
      #expect(read(5).finished() == [Call(true, [])])
      pipe.closeReader()
      let bad = Calls()
      DispatchIO.read(fromFileDescriptor: -1, maxLength: 5, runningHandlerOn: bad.queue) {
        bad.handler(true, $0, $1)
      }
      #expect(bad.finished() == [Call(true, [], EBADF)])
    }

    @Test("S122 one-shot writes: null data on success, else the rest")
    func writeOnce() {
      func write(_ descriptor: Int32, _ bytes: [UInt8]) -> Calls {
        let calls = Calls()
        DispatchIO.write(toFileDescriptor: descriptor, data: bytesData(bytes), runningHandlerOn: calls.queue)
        {
          calls.handler(true, $0, $1)
        }
        return calls
      }
      let sockets = Ends.sockets()
      let bytes = pattern(600_000)
      let writing = write(sockets.writer, bytes)
      let reader = TestChannel(.stream, sockets.reader)
      let reading = reader.read(bytes.count)
      #expect(writing.finished() == [Call(true, nil)])
      #expect(reading.finished().last?.done == true)
      #expect(reading.bytes == bytes)
      reader.end()
      #expect(write(-1, [1, 2]).finished() == [Call(true, [1, 2], EBADF)])
      let file = TemporaryFile()
      #expect(write(file.descriptor, [1, 2]).finished() == [Call(true, nil)])
      #expect(file.bytes == [1, 2])
    }

    @Test("S122 a whole file in one shot", arguments: FileIOTests.policies)
    func fileOnce(_ policy: FilePolicy) {
      FilePolicy.with(policy) {
        let file = TemporaryFile(pattern(2_500_000))
        let calls = Calls()
        DispatchIO.read(fromFileDescriptor: file.descriptor, maxLength: .max, runningHandlerOn: calls.queue) {
          calls.handler(true, $0, $1)
        }
        #expect(calls.finished() == [Call(true, pattern(2_500_000))])
      }
    }

    @Test("S124 under a concurrent queue the calls of one operation do not overlap")
    func concurrentQueue() {
      let sockets = Ends.sockets()
      let queue = DispatchQueue(label: "concurrent", attributes: .concurrent)
      let (reader, writer) = (TestChannel(.stream, sockets.reader), TestChannel(.stream, sockets.writer))
      reader.io.setLimit(highWater: 100)
      let count = Sanitizer.shrunk(50_000)
      let reads = (0..<4).map { _ in reader.read(count / 4, Calls(queue)) }
      #expect(writer.write(pattern(count)).finished() == [Call(true, nil)])
      for read in reads { #expect(read.finished().last?.done == true) }
      #expect(reads.flatMap(\.bytes) == pattern(count))
      reader.end()
      writer.end()
    }
  }
}
