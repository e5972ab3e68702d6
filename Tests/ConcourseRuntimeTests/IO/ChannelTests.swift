import Glibc
import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

extension Engine {
  @Suite("The life of a channel")
  struct ChannelTests {
    @Test("S128 close refuses later operations, and earlier ones finish")
    func closing() {
      let pipe = Ends.pipe()
      let channel = TestChannel(.stream, pipe.reader)
      let before = channel.read(5)
      channel.io.close()
      #expect(channel.io.fileDescriptor == -1)
      #expect(channel.read().finished() == [Call(true, nil, ECANCELED)])
      #expect(channel.write([1, 2]).finished() == [Call(true, [1, 2], ECANCELED)])
      channel.io.close()
      #expect(!channel.isCleaned)
      pipe.send("hello")
      #expect(before.finished() == [Call(true, "hello")])
      #expect(channel.cleanup() == 0)
      channel.io.close(flags: .stop)
    }

    @Test("S128 stop ends operations early, with their partial results")
    func stopping() {
      let pipe = Ends.pipe()
      let channel = TestChannel(.stream, pipe.reader)
      let queue = DispatchQueue(label: "handlers")
      let order = Shared<[String]>([])
      let (first, second) = (Calls(queue), Calls(queue))
      for (name, calls) in [("first", first), ("second", second)] {
        channel.io.read(offset: 0, length: 100, queue: queue) { done, data, error in
          if done { order.change { $0.append(name) } }
          calls.handler(done, data, error)
        }
      }
      pipe.send("hello")
      while !isEmpty(pipe.reader) { Processor.yield() }
      channel.io.close(flags: .stop)
      #expect(first.finished() == [Call(false, "hello"), Call(true, nil, ECANCELED)])
      #expect(second.finished() == [Call(true, nil, ECANCELED)])
      #expect(order.value == ["first", "second"])
      #expect(channel.cleanup() == 0)
      #expect(fcntl(pipe.reader, F_GETFL) & O_NONBLOCK == 0)

      let writer = TestChannel(.stream, pipe.writer)
      let (stuck, waiting) = (writer.write(pattern(200_000)), writer.write([7]))
      writer.io.close(flags: .stop)
      #expect(stuck.finished().last?.error == ECANCELED)
      #expect(waiting.finished() == [Call(true, [7], ECANCELED)])
      #expect(writer.cleanup() == 0)
    }

    @Test("S128 a barrier's captures are released by its item, though the thread that submitted it goes on")
    func capturesOfBarriers() {
      final class Probe: Sendable {
        let released: DispatchSemaphore
        init(_ released: DispatchSemaphore) { self.released = released }
        deinit { released.signal() }
      }
      let pipe = Ends.pipe()
      let channel = TestChannel(.stream, pipe.reader)
      let (queue, released) = (DispatchQueue(label: "barriers"), DispatchSemaphore(value: 0))
      func make() -> DescriptorState.Barrier {
        let probe = Probe(released)
        return .init(queue: queue, body: { withExtendedLifetime(probe) {} }, code: 0, object: channel.io)
      }
      let barrier = make()
      channel.io.entry.submit(barrier)
      #expect(comes(released))
      withExtendedLifetime(barrier) {}
    }

    /// Whether nothing waits to be read.
    private func isEmpty(_ descriptor: Int32) -> Bool {
      var look = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      return poll(&look, 1, 0) == 0
    }

    @Test("S128 stop while files are being read", arguments: FileIOTests.policies)
    func stoppingFiles(_ policy: FilePolicy) {
      FilePolicy.with(policy) {
        let file = TemporaryFile()
        #expect(ftruncate(file.descriptor, 8 << 20) == 0)
        for round in 0..<30 {
          let channel = TestChannel(round % 2 == 0 ? .stream : .random, file.descriptor)
          let reads = (0..<4).map { _ in channel.read() }
          if round % 3 == 0 { _ = reads[0].next() }
          channel.io.close(flags: .stop)
          for read in reads {
            let last = read.finished().last!
            #expect([0, ECANCELED].contains(last.error))
            #expect(last.bytes == (last.error == 0 ? [] : nil))
          }
          #expect(channel.cleanup() == 0)
        }
      }
    }

    @Test("S129 releasing a channel closes it, after its operations")
    func releasing() {
      let pipe = Ends.pipe()
      let cleaned = DispatchSemaphore(value: 0)
      let calls = Calls()
      do {
        let io = DispatchIO(type: .stream, fileDescriptor: pipe.reader, queue: .global()) { error in
          #expect(error == 0)
          cleaned.signal()
        }
        io.read(offset: 0, length: 5, queue: calls.queue, ioHandler: calls.handler)
      }
      #expect(cleaned.wait(timeout: .now() + .milliseconds(20)) == .timedOut)
      pipe.send("hello")
      #expect(calls.finished() == [Call(true, "hello")])
      #expect(comes(cleaned))
    }

    @Test("S129 the cleanup handler comes after the last call of every handler")
    func cleanupLast() {
      let file = TemporaryFile(pattern(100))
      let channel = TestChannel(.stream, file.descriptor)
      let (entered, leave) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
      channel.io.read(offset: 0, length: 100, queue: .global()) { _, _, _ in
        entered.signal()
        #expect(comes(leave))
        #expect(!channel.isCleaned)
      }
      channel.io.close()
      #expect(comes(entered))
      #expect(!channel.isCleaned)
      leave.signal()
      #expect(channel.cleanup() == 0)
    }

    @Test("S130 a bad descriptor, and one without a position for a random channel")
    func failing() {
      let bad = TestChannel(.stream, -1)
      #expect(bad.cleanup() == EBADF)
      #expect(bad.read().finished() == [Call(true, nil, EBADF)])
      #expect(bad.write([1]).finished() == [Call(true, [1], EBADF)])
      #expect(bad.io.fileDescriptor == -1)
      bad.io.close()
      #expect(bad.read().finished() == [Call(true, nil, ECANCELED)])
      let pipe = Ends.pipe()
      let random = TestChannel(.random, pipe.reader)
      #expect(random.cleanup() == ESPIPE)
      #expect(random.read().finished() == [Call(true, nil, ESPIPE)])
      let stream = TestChannel(.stream, pipe.reader)
      #expect(TestChannel(.random, stream).cleanup() == ESPIPE)
      stream.end()
    }

    @Test("S130, trap 17: relative paths give nil, missing ones ENOENT")
    func paths() {
      for path in ["relative", "", "./here"] {
        let io = DispatchIO(type: .stream, path: path, oflag: O_RDONLY, mode: 0, queue: .global()) { _ in
          Issue.record("the cleanup handler of a channel that is none")
        }
        #expect(io == nil)
      }
      let missing = TestChannel(.stream, path: "/nowhere/at/all", O_RDONLY)
      #expect(missing.cleanup() == ENOENT)
      #expect(missing.read().finished() == [Call(true, nil, ENOENT)])
      #expect(missing.io.fileDescriptor == -1)
      #expect(TestChannel(.stream, missing).cleanup() == ENOENT)
      let unmakeable = TestChannel(.stream, path: "/nowhere/at/all", O_WRONLY | O_CREAT)
      #expect(unmakeable.cleanup() == ENOENT)
      let writes = (0..<3).map { unmakeable.write([UInt8($0)]) }
      for (number, write) in writes.enumerated() {
        #expect(write.finished() == [Call(true, [UInt8(number)], ENOENT)])
      }
      for flags in [O_RDONLY, O_RDWR | O_CREAT] {
        #expect(TestChannel(.stream, path: "/tmp", flags).cleanup() == EISDIR)
        #expect(TestChannel(.stream, path: "/", flags).cleanup() == EISDIR)
      }
      // Errors that may be temporary are left to the open.
      TestChannel(.stream, path: "/concourse-not-there", O_RDWR | O_CREAT).end()
      #expect(access("/concourse-not-there", F_OK) != 0)
    }

    @Test(
      "S129 a file that cannot be opened: the operations get the errno, the cleanup handler 0, after them",
      arguments: [DispatchIO.StreamType.stream, .random], [false, true])
    func openingFails(_ type: DispatchIO.StreamType, stopping: Bool) {
      let file = TemporaryFile()
      let channel = TestChannel(type, path: file.path, O_RDWR | O_CREAT | O_EXCL)
      let (entered, leave) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
      let held = Calls()
      channel.io.write(offset: 0, data: bytesData([1, 2]), queue: .global()) { done, data, error in
        entered.signal()
        #expect(comes(leave))
        held.queue.sync { held.handler(done, data, error) }
      }
      #expect(comes(entered))
      #expect(channel.write([3]).finished() == [Call(true, [3], EEXIST)])
      #expect(channel.read().finished() == [Call(true, nil, EEXIST)])
      let found = Shared<[Int32]>([])
      let barrier = DispatchSemaphore(value: 0)
      channel.io.barrier {
        found.change { $0 = [channel.io.fileDescriptor] }
        barrier.signal()
      }
      #expect(comes(barrier))
      #expect(found.value == [-1])
      #expect(TestChannel(type, channel).cleanup() == EEXIST)
      // The failure lasts: the file is not opened a second time.
      unlink(file.path)
      #expect(channel.write([4]).finished() == [Call(true, [4], EEXIST)])
      #expect(access(file.path, F_OK) != 0)
      channel.queue.sync {}
      #expect(!channel.isCleaned)
      channel.io.close(flags: stopping ? .stop : [])
      #expect(channel.write([5]).finished() == [Call(true, [5], ECANCELED)])
      #expect(TestChannel(type, channel).cleanup() == ECANCELED)
      channel.queue.sync {}
      #expect(!channel.isCleaned)
      leave.signal()
      #expect(held.finished() == [Call(true, [1, 2], EEXIST)])
      #expect(channel.cleanup() == 0)
    }

    @Test("S129 a file that cannot be opened: the cleanup handler comes last on a concurrent queue too")
    func openingFailsOften() {
      let file = TemporaryFile()
      for _ in 0..<Sanitizer.shrunk(500) {
        let (cleaned, handled) = (DispatchSemaphore(value: 0), Tally())
        do {
          let io = DispatchIO(
            type: .random, path: file.path, oflag: O_RDWR | O_CREAT | O_EXCL, mode: 0o600, queue: .global()
          ) { error in
            #expect(error == 0)
            #expect(handled.value == 2)
            cleaned.signal()
          }!
          for _ in 0..<2 {
            io.write(offset: 0, data: bytesData([1]), queue: .global()) { done, _, error in
              #expect(done && error == EEXIST)
              Processor.yield()
              handled.add()
            }
          }
        }
        #expect(comes(cleaned))
      }
    }

    @Test("S130, S131 paths are bytes: names that are not UTF-8, and slashes before combining characters")
    func pathsOfBytes() {
      let directory = TemporaryDirectory()
      let base = Array(directory.path.utf8CString.dropLast())
      let name = base + [0x2F, -1, -2, 0x78, 0]
      let (queue, written) = (DispatchQueue(label: "paths"), DispatchSemaphore(value: 0))
      let io = DispatchIO(
        type: .stream, path: name, oflag: O_WRONLY | O_CREAT, mode: 0o600, queue: queue
      ) { _ in written.signal() }
      io?.write(offset: 0, data: bytesData([1]), queue: queue) { _, _, error in #expect(error == 0) }
      io?.close()
      #expect(comes(written))
      #expect(access(name, F_OK) == 0)
      unlink(name)
      // The slash and the accent after it are one character of a String.
      let accented = base + Array("/missing/\u{301}new".utf8CString)
      let failures = Shared<[Int32]>([])
      let missing = DispatchIO(
        type: .stream, path: accented, oflag: O_WRONLY | O_CREAT, mode: 0o600, queue: queue
      ) { error in
        failures.change { $0.append(error) }
        written.signal()
      }
      missing?.close()
      #expect(comes(written))
      #expect(failures.value == [ENOENT])
    }

    @Test("S122 a one-shot operation beside an open channel leaves nothing behind")
    func onceBesideChannel() {
      let pipe = Ends.pipe()
      let channel = TestChannel(.stream, pipe.writer)
      weak var last: DispatchQueue?
      let ended = DispatchSemaphore(value: 0)
      do {
        let queue = DispatchQueue(label: "once")
        last = queue
        DispatchIO.write(toFileDescriptor: pipe.writer, data: bytesData([1]), runningHandlerOn: queue) {
          _, error in
          #expect(error == 0)
          ended.signal()
        }
      }
      #expect(comes(ended))
      #expect(awaitValue { last == nil })
      channel.end()
    }

    @Test("S133 a descriptor whose server does not answer holds up no other channel")
    func hangingStatus() {
      defer { SystemScript.clear() }
      let (slow, quick) = (Ends.pipe(), Ends.pipe())
      let (came, mayGo) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
      let made = DispatchSemaphore(value: 0)
      let calls = Tally()
      SystemScript.redirect(.status) { call in
        guard calls.add() == 1 else { return call() }
        came.signal()
        mayGo.wait()
        return call()
      }
      startThread {
        TestChannel(.stream, slow.reader).end()
        made.signal()
      }
      #expect(comes(came))
      startThread {
        TestChannel(.stream, quick.reader).end()
        made.signal()
      }
      #expect(comes(made))
      mayGo.signal()
      #expect(comes(made))
    }

    @Test("S133 two descriptors of one open file: the last one that channels use becomes blocking again")
    func sharedDescription() {
      let sockets = Ends.sockets()
      let second = dup(sockets.reader)
      defer { close(second) }
      func isBlocking() -> Bool { fcntl(second, F_GETFL) & O_NONBLOCK == 0 }
      let channels = [sockets.reader, second].map { TestChannel(.stream, $0) }
      // The other end of a pair is not the same file, nor is a second opening of one.
      let other = TestChannel(.stream, sockets.writer)
      channels[0].end()
      // Before Linux 6.10 a sandbox may hide that both descriptors are of one file.
      let isKnown = System.isSameFile(sockets.reader, second)
      #expect(!isKnown || !isBlocking())
      channels[1].end()
      #expect(isBlocking())
      other.end()
      #expect(fcntl(sockets.writer, F_GETFL) & O_NONBLOCK == 0)
    }

    @Test("S131 a path is opened by the first operation, and closed at the end")
    func opening() {
      let file = TemporaryFile(pattern(10))
      let channel = TestChannel(.stream, path: file.path, O_RDONLY)
      #expect(channel.io.fileDescriptor == -1)
      #expect(channel.read(4).finished() == [Call(true, Array(pattern(10)[0..<4]))])
      let descriptor = channel.io.fileDescriptor
      #expect(descriptor >= 0)
      #expect(fcntl(descriptor, F_GETFD) & FD_CLOEXEC != 0)
      let identity = (status(descriptor).st_dev, status(descriptor).st_ino)
      #expect(identity == (status(file.descriptor).st_dev, status(file.descriptor).st_ino))
      channel.end()
      // The number is closed, or means another file.
      #expect(fcntl(descriptor, F_GETFD) < 0 || status(descriptor).st_ino != identity.1)

      let inBarrier = TestChannel(.random, path: file.path, O_RDONLY)
      let found = Shared<[Int32]>([])
      let done = DispatchSemaphore(value: 0)
      inBarrier.io.barrier {
        found.change { $0 = [inBarrier.io.fileDescriptor] }
        done.signal()
      }
      #expect(comes(done))
      #expect(found.value[0] >= 0)
      #expect(inBarrier.io.fileDescriptor == found.value[0])
      inBarrier.end()

      TestChannel(.stream, path: file.path, O_RDONLY).end()
    }

    private func status(_ descriptor: Int32) -> stat {
      var status = stat()
      fstat(descriptor, &status)
      return status
    }

    @Test("S133 channels of one descriptor share it, and are cleaned up together")
    func sharing() {
      let file = TemporaryFile(pattern(1000))
      let first = TestChannel(.stream, file.descriptor)
      let second = TestChannel(.random, first)
      let third = TestChannel(.stream, file.descriptor)
      #expect(second.read(10, at: 900).finished() == [Call(true, Array(pattern(1000)[900..<910]))])
      #expect(first.read(10).finished() == [Call(true, Array(pattern(10)))])
      #expect(third.read(10).finished() == [Call(true, Array(pattern(20)[10...]))])
      first.io.close()
      #expect(TestChannel(.stream, first).cleanup() == ECANCELED)
      third.io.close()
      // The queue has run an item since both closed, and no handler was on it.
      first.queue.sync {}
      #expect(!first.isCleaned && !third.isCleaned)
      #expect(second.read(1).finished().last?.done == true)
      second.io.close()
      for channel in [first, second, third] { #expect(channel.cleanup() == 0) }

      // A path is opened by each.
      let path = TestChannel(.stream, path: file.path, O_RDWR)
      #expect(path.read(5).finished() == [Call(true, Array(pattern(5)))])
      let other = TestChannel(.stream, path)
      #expect(other.io.fileDescriptor == -1)
      #expect(other.read(5).finished() == [Call(true, Array(pattern(5)))])
      #expect(path.io.fileDescriptor != other.io.fileDescriptor)
      path.end()
      #expect(!other.isCleaned)
      other.end()
    }

    @Test("S132 a barrier is alone on the descriptor, after all earlier and before all later operations")
    func barriers() {
      let file = TemporaryFile()
      let writer = TestChannel(.stream, file.descriptor)
      let other = TestChannel(.random, writer)
      let sizes = Shared<[Int]>([])
      let done = DispatchGroup()
      for _ in 0..<20 {
        done.enter()
        writer.io.write(offset: 0, data: bytesData(pattern(30_000)), queue: .global()) { last, _, error in
          #expect(error == 0)
          if last { done.leave() }
        }
        done.enter()
        other.io.barrier {
          dispatchPrecondition(condition: .onQueue(other.queue))
          sizes.change { $0.append(Int(lseek(file.descriptor, 0, SEEK_END))) }
          done.leave()
        }
      }
      #expect(empties(done))
      #expect(sizes.value == (1...20).map { $0 * 30_000 })
      writer.io.close()
      other.io.close()
      let after = DispatchSemaphore(value: 0)
      other.io.barrier { after.signal() }
      #expect(comes(after))
    }

    @Test(
      "S132 handlers do not delay a barrier, even one that they wait for", arguments: FileIOTests.policies)
    func barrierAndHandler(_ policy: FilePolicy) {
      FilePolicy.with(policy) {
        let file = TemporaryFile()
        #expect(ftruncate(file.descriptor, 4 << 20) == 0)
        let channel = TestChannel(.stream, file.descriptor)
        let (barrier, ended) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let calls = Tally()
        channel.io.read(offset: 0, length: .max, queue: DispatchQueue(label: "waits")) { done, _, _ in
          // Of several calls the first waits.
          if calls.add() == 1 { #expect(comes(barrier)) }
          if done { ended.signal() }
        }
        channel.io.barrier { barrier.signal() }
        #expect(comes(ended))
        #expect(calls.value > 2)
        channel.end()
      }
    }

    @Test("a channel's target runs its barriers")
    func target() {
      let file = TemporaryFile()
      let channel = TestChannel(.stream, file.descriptor)
      let queue = DispatchQueue(label: "target")
      channel.io.setTarget(queue: queue)
      let done = DispatchSemaphore(value: 0)
      channel.io.barrier {
        dispatchPrecondition(condition: .onQueue(queue))
        done.signal()
      }
      #expect(comes(done))
      channel.io.setTarget(queue: nil)
      #expect(channel.io.channel.queue == DispatchQueue.global())
      channel.end()
    }

    @Test("many threads create and close channels of one descriptor")
    func crowd() {
      let file = TemporaryFile(pattern(100))
      let pipe = Ends.pipe()
      let group = DispatchGroup()
      let wrong = Tally()
      let rounds = Sanitizer.shrunk(400)
      #expect(
        onThreads(4) { thread in
          for round in 0..<rounds {
            let descriptor = round % 2 == 0 ? file.descriptor : pipe.reader
            group.enter()
            let io = DispatchIO(type: .stream, fileDescriptor: descriptor, queue: .global()) { error in
              if error != 0 { wrong.add() }
              group.leave()
            }
            group.enter()
            io.read(offset: 0, length: 10, queue: .global()) { done, _, _ in if done { group.leave() } }
            if round % 2 == 1 || thread % 2 == 0 { io.close(flags: .stop) }
          }
        })
      #expect(empties(group))
      #expect(wrong.value == 0)
      #expect(fcntl(pipe.reader, F_GETFL) & O_NONBLOCK == 0)
    }

    @Test("types, flags and the descriptor's type have C's values")
    func values() {
      #expect(DispatchIO.StreamType.stream.rawValue == 0)
      #expect(DispatchIO.StreamType(rawValue: 1) == .random)
      #expect(DispatchIO.StreamType(rawValue: 2) == nil)
      #expect(DispatchIO.CloseFlags.stop.rawValue == 1)
      #expect(DispatchIO.IntervalFlags.strictInterval.rawValue == 1)
      #expect(DispatchIO.IntervalFlags(nilLiteral: ()).isEmpty)
    }
  }
}

@Suite("The state of a channel")
struct ChannelStateTests {
  @Test("S128 closing refuses, and happens once")
  func closing() {
    var state = ChannelState()
    #expect(state.admission() == .admitted)
    #expect(state.close() == .leave)
    #expect(state.isClosed)
    #expect(state.admission() == .refused(125))
    #expect(state.close() == .nothing)
    #expect(state.fail(5) == .nothing)
    #expect(state.admission() == .refused(125))
  }

  @Test("S130 a channel without a file refuses with the reason until it is closed")
  func failing() {
    var state = ChannelState()
    #expect(state.fail(5) == .leave)
    #expect(!state.isClosed)
    #expect(state.admission() == .refused(5))
    #expect(state.fail(6) == .nothing)
    #expect(state.close() == .nothing)
    #expect(state.admission() == .refused(125))
  }
}
