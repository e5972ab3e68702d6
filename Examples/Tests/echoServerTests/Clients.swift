import Glibc
import Synchronization
import Testing

@testable import echo_server

/// A blocking client. Each call fails after two minutes, so that a server that does not answer fails the test.
///
/// Its end closes the connection, and Swift may end it after its last use: a test that counts open connections
/// keeps its clients with `withExtendedLifetime`.
final class EchoClient {
  let descriptor: Int32

  /// - Parameter receiveBuffer: bytes that the kernel should keep for us at most, about.
  init(port: UInt16, receiveBuffer: Int32? = nil) throws {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    try #require(descriptor >= 0, "socket: errno \(errno)")
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    if var size = receiveBuffer {
      setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
    }
    var patience = timeval(tv_sec: 120, tv_usec: 0)
    for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
      setsockopt(descriptor, SOL_SOCKET, option, &patience, socklen_t(MemoryLayout<timeval>.size))
    }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    // SAFETY: a sockaddr_in is passed as a sockaddr with its own size.
    let failure = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard failure == 0 else { throw Refused(errno: errno) }
  }

  /// No server listens, for example.
  struct Refused: Error {
    let errno: Int32
  }

  deinit { close(descriptor) }

  func send(_ bytes: [UInt8]) throws {
    var sent = 0
    while sent < bytes.count {
      // SAFETY: stays within the buffer, as `sent` is below its count.
      let count = bytes.withUnsafeBytes {
        Glibc.send(descriptor, $0.baseAddress! + sent, $0.count - sent, Int32(MSG_NOSIGNAL))
      }
      try #require(count > 0, "send: errno \(errno)")
      sent += count
    }
  }

  /// Sends without waiting, as much as the kernel takes.
  func sendWhatFits(_ bytes: ArraySlice<UInt8>) -> Int {
    // SAFETY: the whole buffer and no more.
    let count = bytes.withUnsafeBytes {
      Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
    }
    return max(0, count)
  }

  /// Exactly so many bytes, or fewer at the end of the stream.
  func receive(_ count: Int) throws -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    var received = 0
    while received < count {
      // SAFETY: stays within the buffer, as `received` is below its count.
      let more = bytes.withUnsafeMutableBytes {
        recv(descriptor, $0.baseAddress! + received, $0.count - received, 0)
      }
      try #require(more >= 0, "recv: errno \(errno)")
      if more == 0 { return Array(bytes[..<received]) }
      received += more
    }
    return bytes
  }

  func endOutput() { shutdown(descriptor, Int32(SHUT_WR)) }

  /// Has the later close reset the connection.
  func resetsWhenClosed() {
    var setting = linger(l_onoff: 1, l_linger: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &setting, socklen_t(MemoryLayout<linger>.size))
  }

  func expectEcho(of bytes: [UInt8]) throws {
    try send(bytes)
    #expect(try receive(bytes.count) == bytes)
  }
}

/// Bytes that differ from place to place, and with the seed.
func message(_ count: Int, seed: Int = 0) -> [UInt8] {
  // The block's length is a prime number: no buffer's size is a multiple of it.
  let block = (0..<min(count, 65_521)).map { UInt8(truncatingIfNeeded: ($0 &* 31) ^ ($0 >> 8) &+ seed) }
  var bytes: [UInt8] = []
  bytes.reserveCapacity(count)
  while bytes.count < count { bytes += block.prefix(count - bytes.count) }
  return bytes
}

/// A server in this process, for one test.
final class RunningServer: Sendable {
  let server: Server
  let reports = Reports()

  init(_ configure: (inout Options) -> Void = { _ in }) throws {
    var options = Options()
    options.port = 0
    options.maximumConnections = 1_000
    configure(&options)
    let reports = reports
    server = try Server(options) { reports.add($0) }
    server.start()
  }

  func client(receiveBuffer: Int32? = nil) throws -> EchoClient {
    try EchoClient(port: server.port, receiveBuffer: receiveBuffer)
  }

  /// Returns once everything is closed.
  func stop(grace: Int = 20) async {
    await withCheckedContinuation { continuation in
      server.stop(grace: grace) { continuation.resume() }
    }
  }

  /// Polls the statistics until the condition holds: a client cannot see what the server has done with its bytes.
  /// Fails the test after two minutes.
  func wait(_ what: Comment, until holds: (Statistics) -> Bool) async throws {
    let start = ContinuousClock.now
    while !holds(server.statistics) {
      try #require(ContinuousClock.now - start < .seconds(120), what)
      await Task.yield()
      usleep(200)
    }
  }
}

/// What the server reported.
final class Reports: Sendable {
  private let messages = Mutex<[String]>([])

  func add(_ message: String) { messages.withLock { $0.append(message) } }
  var all: [String] { messages.withLock { $0 } }
}

/// How many connections to use where the number matters: ECHO_TEST_CONNECTIONS, or some.
func connectionCount(unlessTold few: Int) -> Int {
  guard let text = getenv("ECHO_TEST_CONNECTIONS"), let count = Int(String(cString: text)) else { return few }
  return count
}
