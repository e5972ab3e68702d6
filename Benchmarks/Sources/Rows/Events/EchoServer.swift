import CBench
import Glibc

/// A server as one writes it with sources: one for the listening socket, one for each connection. An event means one
/// read and one write, as in the rival's epoll loop.
///
/// SAFETY: its own fields never change after init; the counters change on `queue` only.
final class EchoServer: @unchecked Sendable {
  let port: Int32
  let accepted = Cell()
  /// Bytes echoed on connections that have ended.
  let bytes = Cell()
  private let queue = DispatchQueue(label: "echo.accept")
  /// Entered for the listener and each connection.
  private let open = DispatchGroup()
  private let listener: any DispatchSourceRead

  init() {
    var port: Int32 = 0
    let descriptor = bench_listen(&port)
    verify(descriptor >= 0, equals: true, "the server listens")
    self.port = port
    listener = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
    open.enter()
    listener.setEventHandler { [unowned self] in accept(from: descriptor) }
    listener.setCancelHandler { [open] in
      close(descriptor)
      open.leave()
    }
    listener.resume()
  }

  /// Returns when the clients have closed all connections and the server has released them.
  func stop() {
    listener.cancel()
    open.wait()
    queue.sync {}
  }

  private func accept(from descriptor: Int32) {
    while true {
      let connection = bench_accept(descriptor)
      guard connection >= 0 else {
        verify(errno, equals: EAGAIN, "errno of accept")
        return
      }
      accepted.add(1)
      serve(connection)
    }
  }

  private func serve(_ connection: Int32) {
    open.enter()
    let echoed = Cell()
    let source = DispatchSource.makeReadSource(
      fileDescriptor: connection, queue: DispatchQueue(label: "echo.connection"))
    source.setEventHandler {
      // The source keeps itself alive by this reference until it is cancelled.
      if !echoOnce(on: connection, counting: echoed) { source.cancel() }
    }
    source.setCancelHandler { [queue, bytes, open] in
      close(connection)
      queue.async {
        bytes.add(echoed.value)
        open.leave()
      }
    }
    source.resume()
  }
}

/// Reads once and writes the bytes back. Returns whether there may be more.
private func echoOnce(on connection: Int32, counting echoed: Cell) -> Bool {
  // The most that Swift takes from the stack, and as much as the rival's buffer has.
  withUnsafeTemporaryAllocation(byteCount: 1024, alignment: 16) { buffer in
    // SAFETY: both calls stay within the buffer, which lives until the closure returns.
    let count = read(connection, buffer.baseAddress, buffer.count)
    guard count > 0 else {
      if count < 0 { verify(errno, equals: EAGAIN, "errno of read") }
      return count < 0
    }
    verify(write(connection, buffer.baseAddress, count), equals: count, "bytes written")
    echoed.add(count)
    return true
  }
}
