import Glibc
import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

extension Engine {
  @Suite("Closing a channel beside its barriers")
  struct ClosingTests {
    /// When a channel is closed, beside a barrier that asks for its descriptor.
    enum Closing: CaseIterable {
      case afterwards, before, stopping, twice
    }

    @Test(
      "S128, S131 a barrier submitted before close gets the descriptor, one submitted later or stopped does not",
      arguments: Closing.allCases, [false, true])
    func barriersAtClose(_ closing: Closing, ofAPath: Bool) {
      let file = TemporaryFile(pattern(10))
      let channel =
        ofAPath ? TestChannel(.stream, path: file.path, O_RDWR) : TestChannel(.stream, file.descriptor)
      let answers = Shared<[Int32]>([])
      let synced = Shared<[Int32]>([])
      let ran = DispatchSemaphore(value: 0)
      let other = ofAPath ? nil : TestChannel(.stream, channel)
      // The barrier starts when the channel has been closed.
      channel.queue.suspend()
      if closing == .before { channel.io.close() }
      channel.io.barrier {
        let descriptor = channel.io.fileDescriptor
        answers.change { $0.append(descriptor) }
        synced.change { $0.append(fsync(descriptor)) }
        ran.signal()
      }
      // A barrier of another channel of the descriptor.
      other?.io.barrier { answers.change { $0.append(channel.io.fileDescriptor) } }
      switch closing {
      case .afterwards: channel.io.close()
      case .before: break
      case .stopping: channel.io.close(flags: .stop)
      case .twice:
        channel.io.close()
        channel.io.close(flags: .stop)
      }
      #expect(channel.io.fileDescriptor == -1)
      channel.queue.resume()
      #expect(comes(ran))
      other?.end()
      #expect(channel.cleanup() == 0)
      let isOpen = closing == .afterwards
      #expect(synced.value == [isOpen ? 0 : -1])
      #expect(answers.value.count == (ofAPath ? 1 : 2))
      #expect((answers.value[0] >= 0) == isOpen)
      #expect(answers.value.dropFirst().allSatisfy { $0 == -1 })
      #expect(channel.io.fileDescriptor == -1)
    }

    @Test("S132 a write, a barrier that syncs it, and close")
    func syncingBeforeClose() {
      for ofAPath in [false, true] {
        let file = TemporaryFile()
        let channel =
          ofAPath ? TestChannel(.stream, path: file.path, O_RDWR) : TestChannel(.stream, file.descriptor)
        let written = Calls()
        let synced = Shared<[Int32]>([])
        _ = channel.write(pattern(100), written)
        channel.io.barrier {
          #expect(file.bytes == pattern(100))
          synced.change { $0.append(fsync(channel.io.fileDescriptor)) }
        }
        channel.end()
        #expect(synced.value == [0])
        #expect(written.finished() == [Call(true, nil)])
      }
    }
  }
}
