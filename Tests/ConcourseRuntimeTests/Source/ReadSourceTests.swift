import Glibc
import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

extension Engine {
  /// What read sources count, and what they take for the end.
  @Suite("What read sources report", .serialized)
  struct ReadSourceTests {
    /// The first report of a read source on the descriptor, as from a source that is cancelled then.
    private static func firstReport(_ descriptor: Int32) -> UInt? {
      let reports = Reports()
      let (came, cancelled) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
      let source = DispatchSource.makeReadSource(
        fileDescriptor: descriptor, queue: DispatchQueue(label: "reader"))
      source.setEventHandler { [unowned source = source as! DispatchSource] in
        reports.note(source.core.data)
        source.cancel()
        came.signal()
      }
      source.setCancelHandler { cancelled.signal() }
      source.activate()
      guard comes(came) else { return nil }
      #expect(comes(cancelled))
      return reports.all.first
    }

    private static let gibi = 1 << 30

    @Test(
      "S108, S109 files with more bytes than an int counts, and positions past the end",
      arguments: [
        (3 * gibi, 0), (4 * gibi, 0), (5 * gibi + 7, gibi), (100, 100), (100, 104), (100, 3 * gibi),
      ])
    func longFile(size: Int, position: Int) {
      let file = TemporaryFile()
      #expect(ftruncate(file.descriptor, size) == 0)
      #expect(lseek(file.descriptor, position, SEEK_SET) == position)
      #expect(Self.firstReport(file.descriptor) == UInt(max(0, size - position)))
    }

    @Test("S109 bytes that a writer leaves between the count and the question whether it has gone")
    func lastBytes() {
      defer { SystemScript.clear() }
      let pipe = Ends.pipe()
      pipe.send("last")
      pipe.closeWriter()
      // As if the writer had written and closed after the count.
      let counts = Tally()
      SystemScript.redirect(.deviceControl) { call in counts.add() == 1 ? 0 : call() }
      #expect(Self.firstReport(pipe.reader) == 4)
    }

    @Test("S108 an empty datagram is something to read, not the end")
    func emptyDatagram() {
      var ends: [Int32] = [0, 0]
      #expect(socketpair(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0, &ends) == 0)
      defer { for end in ends { close(end) } }
      #expect(send(ends[1], "", 0, 0) == 0)
      #expect(Self.firstReport(ends[0]) == 1)
    }

    @Test(
      "S109 the end is reported once by a pipe, and until the cancellation by a socket whose peer has closed")
    func ends() {
      let sockets = Ends.sockets()
      sockets.closeWriter()
      let (calls, cancelled) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
      let source = DispatchSource.makeReadSource(
        fileDescriptor: sockets.reader, queue: DispatchQueue(label: "reader"))
      source.setEventHandler { calls.signal() }
      source.setCancelHandler { cancelled.signal() }
      source.activate()
      for _ in 0..<3 { #expect(comes(calls)) }
      source.cancel()
      #expect(comes(cancelled))
    }
  }
}
