import Glibc
import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

extension Engine {
  @Suite("Many one-shot operations on a descriptor")
  struct SingleOperationTests {
    @Test("S122 the channels of one-shot operations are counted and not kept")
    func countedOnce() {
      let pipe = Ends.pipe()
      var state = DescriptorState(.open(OpenFile.adopt(pipe.reader, isOwn: false).file!))
      let queue = DispatchQueue(label: "once")
      let once = (0..<3).map { _ in Channel(forOneOperationOn: queue) }
      let channel = Channel(.stream, queue, nil)
      let areAttached = once.map { state.attach($0) }
      #expect(areAttached == [true, true, true] && state.channels.isEmpty)
      let isAttached = state.attach(channel)
      #expect(isAttached)
      state.close(channel, stopping: false)
      for channel in once {
        #expect(!state.isUnused)
        state.close(channel, stopping: false)
      }
      #expect(state.isUnused)
      let cleaned = state.giveBack()
      #expect(cleaned.count == 1 && !state.isUnused)
      let isLateAttached = state.attach(Channel(forOneOperationOn: queue))
      #expect(!isLateAttached)
    }

    @Test("S122, S133 the flags of a descriptor are restored after the last of many one-shot operations")
    func manyOnce() {
      let pipe = Ends.pipe()
      let count = 300
      let (queue, group) = (DispatchQueue(label: "once"), DispatchGroup())
      func isBlocking() -> Bool { fcntl(pipe.writer, F_GETFL) & O_NONBLOCK == 0 }
      // More than the pipe holds: most of the writes wait.
      let piece = bytesData(pattern(4096))
      for _ in 0..<count {
        group.enter()
        DispatchIO.write(toFileDescriptor: pipe.writer, data: piece, runningHandlerOn: queue) { _, error in
          #expect(error == 0)
          group.leave()
        }
      }
      var bytes = [UInt8](repeating: 0, count: 4096)
      for round in 0..<count {
        // The pipe does not hold the rest.
        if round < count / 2 { #expect(!isBlocking()) }
        var received = 0
        while received < bytes.count {
          let length = Glibc.read(pipe.reader, &bytes, bytes.count - received)
          guard length > 0 else { break }
          received += length
        }
        #expect(received == bytes.count)
      }
      #expect(group.wait(timeout: .now() + .seconds(60)) == .success)
      #expect(isBlocking())
      // The descriptor can be taken again.
      TestChannel(.stream, pipe.writer).end()
    }
  }
}
