import Glibc
import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

extension Crash {
  @Suite("Channels")
  struct IOCrashTests {
    @Test("S134 writing to a pipe without readers raises SIGPIPE")
    func brokenPipe() async {
      await #expect(processExitsWith: .signal(SIGPIPE)) {
        signal(SIGPIPE, SIG_DFL)
        let pipe = Ends.pipe()
        let channel = TestChannel(.stream, pipe.writer)
        pipe.closeReader()
        _ = channel.write([1])
        awaitDeath()
      }
    }

    @Test("the descriptor of a path's channel, closed by the program")
    func stolen() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        // Another thread of this process that opens a file gets the lowest free number, so not the channel's.
        let lower = (0..<8).map { _ in open("/dev/null", O_RDONLY) }
        let channel = TestChannel(.stream, path: "/dev/zero", O_RDONLY)
        _ = channel.read(10).finished()
        for descriptor in lower { close(descriptor) }
        close(channel.io.fileDescriptor)
        channel.io.close()
        awaitDeath()
      }
      end.says("of a DispatchIO channel made from a path was closed by others")
    }

    @Test("S148 operations in a forked child", .enabled(if: !Sanitizer.isThread))
    func forked() async {
      let end = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
        let channel = TestChannel(.stream, path: "/dev/zero", O_RDONLY)
        _ = channel.read(10).finished()
        let status = inForkedChild {
          _ = channel.read(10)
          _exit(1)
        }
        #expect(status & 0x7F == SIGILL)
      }
      end.says("an operation of a DispatchIO channel in a forked child process")
    }
  }
}
