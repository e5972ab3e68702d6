import Glibc
import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

extension Engine {
  /// Sockets that are ready although the kernel counts no bytes.
  @Suite("Read sources of sockets", .serialized)
  struct SocketReadSourceTests {
    @Test("S108 bytes behind an urgent one are something to read, not the end")
    func bytesBehindUrgentByte() {
      let connection = connection()
      connection.send("abc")
      #expect(send(connection.writer, "!", 1, Int32(MSG_OOB)) == 1)
      connection.send("defgh")
      var bytes = [UInt8](repeating: 0, count: 16)
      #expect(read(connection.reader, &bytes, 3) == 3)
      // The reader is before the urgent byte, which a read skips.
      let peek = Int32(MSG_PEEK | MSG_DONTWAIT)
      #expect(awaitValue { recv(connection.reader, &bytes, bytes.count, peek) == 5 })

      let source = ReadingSource(connection.reader, hub: .shared)
      defer { source.cancel() }
      // One byte, and then those that the kernel counts.
      source.reports([1, 4])
      connection.send("ij")
      source.reports([1, 4, 2])
    }

    @Test("S109 a notice in the error queue is neither the end nor a reason to be called")
    func noticeInErrorQueue() {
      let connection = connection()
      // SO_ZEROCOPY and MSG_ZEROCOPY: the kernel tells by a notice when it has sent the bytes.
      var yes: Int32 = 1
      #expect(setsockopt(connection.reader, SOL_SOCKET, 60, &yes, 4) == 0)
      #expect(send(connection.reader, "out", 3, 0x400_0000) == 3)
      #expect(awaitValue { System.readiness(of: connection.reader, 0) != 0 })

      let source = ReadingSource(connection.reader, hub: .shared)
      defer { source.cancel() }
      connection.send("in")
      source.reports([2])
      connection.send("again")
      source.reports([2, 5])
      connection.closeWriter()
      #expect(awaitValue { source.reports.all.last == 0 })
    }

    @Test("S108 a notice in the error queue of a datagram socket does not call the handler again and again")
    func noticeOfDatagrams() throws {
      let sender = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
      defer { close(sender) }
      let other = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
      var size = socklen_t(MemoryLayout<sockaddr_in>.size)
      // SAFETY: as below.
      withUnsafeMutableBytes(of: &address) { bytes in
        let general = bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self)
        #expect(bind(other, general, size) == 0 && getsockname(other, general, &size) == 0)
        close(other)
        #expect(connect(sender, general, size) == 0)
      }
      // IP_RECVERR: that nothing is at the port is an error, and a notice in the queue.
      var yes: Int32 = 1
      #expect(setsockopt(sender, 0, 11, &yes, 4) == 0)
      #expect(send(sender, "out", 3, 0) == 3)
      let calls = Tally()
      let source = DispatchSource.makeReadSource(
        fileDescriptor: sender, queue: DispatchQueue(label: "datagrams"))
      source.setEventHandler {
        var bytes = [UInt8](repeating: 0, count: 16)
        // It takes the error.
        _ = recv(sender, &bytes, bytes.count, Int32(MSG_DONTWAIT))
        calls.add(1)
      }
      source.activate()
      defer { source.cancel() }
      #expect(awaitValue { calls.value > 0 })
      turn(rounds: 1000)
      #expect(calls.value < 10)
      let before = calls.value
      #expect(send(sender, "out", 3, 0) == 3)
      #expect(awaitValue { calls.value > before })
    }

    @Test("S110 a notice in the error queue of a full socket is no space")
    func noticeWithoutSpace() {
      let connection = connection()
      let sender = connection.reader
      // SO_ZEROCOPY and MSG_ZEROCOPY, as above.
      var yes: Int32 = 1
      #expect(setsockopt(sender, SOL_SOCKET, 60, &yes, 4) == 0)
      #expect(send(sender, "out", 3, 0x400_0000) == 3)
      let bytes = [UInt8](repeating: 0, count: 65536)
      let atOnce = Int32(MSG_DONTWAIT)
      var sent = 3
      // The other side takes what has room there.
      #expect(
        awaitValue {
          let count = send(sender, bytes, bytes.count, atOnce)
          sent += max(count, 0)
          return count < 0
            && System.readiness(of: sender, Readiness.writable.rawValue) == Int(Readiness.error.rawValue)
        })
      let calls = Tally()
      let source = DispatchSource.makeWriteSource(
        fileDescriptor: sender, queue: DispatchQueue(label: "full"))
      source.setEventHandler { calls.add(1) }
      source.activate()
      defer { source.cancel() }
      turn(rounds: 1000)
      #expect(calls.value == 0)
      var read = [UInt8](repeating: 0, count: 1 << 20)
      while sent > 0 { sent -= recv(connection.writer, &read, read.count, 0) }
      #expect(awaitValue { calls.value > 0 })
    }

    /// Lets the event loop report so many events.
    private func turn(rounds: Int) {
      var ends: [Int32] = [0, 0]
      #expect(pipe(&ends) == 0)
      defer { for end in ends { close(end) } }
      let pings = ReadingSource(ends[0], hub: .shared)
      defer { pings.cancel() }
      for round in 1...rounds {
        write(ends[1], "!", 1)
        #expect(awaitValue { pings.reports.all.count == round })
      }
    }

    /// Two sockets that are connected by TCP.
    private func connection() -> Ends {
      let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
      defer { close(listener) }
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
      var size = socklen_t(MemoryLayout<sockaddr_in>.size)
      let reader = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
      // SAFETY: the structure has the layout that its family names, and does not leave the closure.
      withUnsafeMutableBytes(of: &address) { bytes in
        let general = bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self)
        #expect(bind(listener, general, size) == 0 && listen(listener, 1) == 0)
        #expect(getsockname(listener, general, &size) == 0)
        #expect(connect(reader, general, size) == 0)
      }
      return Ends([reader, accept(listener, nil, nil)])
    }
  }
}
