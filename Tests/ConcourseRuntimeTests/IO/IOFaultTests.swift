import Glibc
import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

extension Engine {
  @Suite("DispatchIO when the system refuses")
  struct IOFaultTests {
    @Test("EINTR: the call is repeated", arguments: FileIOTests.policies)
    func interrupted(_ policy: FilePolicy) {
      FilePolicy.with(policy) {
        let file = TemporaryFile(pattern(2_000_000))
        let channel = TestChannel(.stream, file.descriptor)
        for call in [SystemCall.read, .ringEnter, .write] {
          let calls = SystemScript.refusing(call, with: EINTR, times: 20) {
            let calls = call == .write ? channel.write([1]) : channel.read(1_000_000)
            #expect(calls.finished().last?.error == 0)
            return calls
          }
          #expect(calls.all.last?.done == true)
        }
        channel.end()
      }
    }

    @Test(
      "trap 4: repeated EAGAIN: retried later, not in a busy loop, and nothing is lost",
      arguments: FileIOTests.policies)
    func again(_ policy: FilePolicy) {
      FilePolicy.with(policy) {
        let file = TemporaryFile(pattern(100_000))
        let channel = TestChannel(.stream, file.descriptor)
        SystemScript.refusing(.read, with: EAGAIN, times: 12) {
          #expect(channel.read(100_000).finished().last == Call(true, pattern(100_000)))
        }
        SystemScript.refusing(.write, with: EAGAIN, times: 12) {
          #expect(channel.write([1]).finished() == [Call(true, nil)])
        }
        channel.end()
        #expect(file.bytes == pattern(100_000) + [1])
      }
    }

    @Test("trap 4: EAGAIN from a descriptor that is reported ready: tried a few times a second")
    func storm() {
      let pipe = Ends.pipe()
      pipe.send("hello")
      let channel = TestChannel(.stream, pipe.reader)
      SystemScript.refuse(.read, with: EAGAIN)
      let begun = Clock.uptime()
      let calls = channel.read(5)
      while SystemScript.count(.read) < 20 { Processor.yield() }
      // Sixteen of them waited, each a millisecond at least.
      #expect(Clock.uptime() - begun > 15_000_000)
      #expect(calls.all.isEmpty)
      SystemScript.clear()
      #expect(calls.finished() == [Call(true, "hello")])
      channel.end()
    }

    @Test("S125 errors of reading and writing reach the handler", arguments: FileIOTests.policies)
    func failing(_ policy: FilePolicy) {
      FilePolicy.with(policy) {
        let file = TemporaryFile(pattern(3_000_000))
        let channel = TestChannel(.stream, file.descriptor)
        // Without a ring, so that the refused calls are used.
        SystemScript.refuse(.ringEnter, with: EBUSY)
        SystemScript.refuse(.read, with: EIO, after: 2)
        channel.io.setLimit(lowWater: .max)
        channel.io.setLimit(highWater: 900_000)
        let read = channel.read()
        #expect(read.finished().last == Call(true, nil, EIO))
        #expect(read.bytes == Array(pattern(3_000_000).prefix(read.bytes.count)))
        SystemScript.refuse(.write, with: ENOSPC)
        #expect(channel.write([1, 2]).finished() == [Call(true, [1, 2], ENOSPC)])
        SystemScript.refuse(.read, with: ENOMEM)
        #expect(channel.read(1).finished() == [Call(true, nil, ENOMEM)])
        SystemScript.clear()
        channel.end()
      }
    }

    @Test("S130, trap 19: no descriptors for a path, and refused calls at a channel's creation")
    func settingUp() {
      let file = TemporaryFile(pattern(10))
      SystemScript.refusing(.open, with: EMFILE) {
        let channel = TestChannel(.stream, path: file.path, O_RDONLY)
        #expect(channel.read().finished() == [Call(true, nil, EMFILE)])
        channel.end()
      }
      SystemScript.refusing(.status, with: ENOMEM) {
        #expect(TestChannel(.stream, path: file.path, O_RDONLY).cleanup() == ENOMEM)
        #expect(TestChannel(.stream, file.descriptor).cleanup() == ENOMEM)
      }
      SystemScript.refusing(.seek, with: EOVERFLOW) {
        #expect(TestChannel(.random, file.descriptor).cleanup() == EOVERFLOW)
      }
    }

    @Test(
      "trap 19: a descriptor whose flags cannot be set, and one that epoll refuses",
      arguments: [SystemCall.control, .epollControl])
    func flags(_ call: SystemCall) {
      let pipe = Ends.pipe()
      pipe.send("hello")
      let error = call == .control ? EPERM : ENOMEM
      SystemScript.refusing(call, with: error) {
        let channel = TestChannel(.stream, pipe.reader)
        #expect(channel.read(5).finished() == [Call(true, "hello")])
        if call == .epollControl {
          let calls = channel.read(5)
          while SystemScript.count(.epollControl) == 0 { Processor.yield() }
          pipe.send("again")
          #expect(calls.finished().last?.done == true)
          #expect(calls.bytes == Array("again".utf8))
        }
        channel.end()
      }
    }

    @Test("trap 6: a descriptor that its owner closes under a waiting operation")
    func closedUnderneath() {
      let pipe = Ends.pipe()
      let channel = TestChannel(.stream, pipe.reader)
      SystemScript.refuse(.read, with: EAGAIN, times: 1)
      pipe.send("x")
      SystemScript.refuse(.epollControl, with: EBADF)
      let calls = channel.read(5)
      #expect(calls.finished() == [Call(true, nil, EBADF)])
      SystemScript.clear()
      channel.end()
    }
  }
}
