import Glibc
import Testing

/// A blocking client. Each call gives up after a while, so that a server that does not answer fails a test
/// and does not hang it.
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
    var patience = timeval(tv_sec: 20, tv_usec: 0)
    for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
      setsockopt(descriptor, SOL_SOCKET, option, &patience, socklen_t(MemoryLayout<timeval>.size))
    }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    // SAFETY: a sockaddr_in is passed as the sockaddr that it begins like, with its own size.
    let failure = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard failure == 0 else { throw Refused(errno: errno) }
  }

  /// Nobody listens, for example.
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

  /// Has the later close reset the connection instead of ending it in good order.
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
