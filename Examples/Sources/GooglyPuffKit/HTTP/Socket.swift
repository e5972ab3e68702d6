import Glibc

/// System calls on non-blocking sockets.
enum Socket {
  enum Transfer {
    /// Received: at least one byte. Sent: as many as the kernel had room for, maybe none.
    case bytes(Int)
    /// Nothing can be received now.
    case nothing
    /// The peer has closed its side.
    case end
    case failed
  }

  static func receive(_ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer) -> Transfer {
    while true {
      let count = recv(descriptor, buffer.baseAddress, buffer.count, 0)
      if count > 0 { return .bytes(count) }
      if count == 0 { return .end }
      if errno == EINTR { continue }
      return errno == EAGAIN ? .nothing : .failed
    }
  }

  static func send(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) -> Transfer {
    while true {
      let count = Glibc.send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
      if count >= 0 { return .bytes(count) }
      if errno == EINTR { continue }
      return errno == EAGAIN ? .bytes(0) : .failed
    }
  }

  /// Accepts a connection; nil if none is pending, or no descriptor is free.
  static func accept(from listener: Int32) -> (connection: Int32?, isOutOfDescriptors: Bool) {
    while true {
      let connection = Glibc.accept(listener, nil, nil)
      if connection >= 0 {
        prepare(connection)
        return (connection, false)
      }
      switch errno {
      // An error of one pending connection, which is gone. Try the next one.
      case EINTR, ECONNABORTED, EPROTO: continue
      default: return (nil, errno != EAGAIN)
      }
    }
  }

  static func prepare(_ descriptor: Int32) {
    _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
  }
}

/// A listening TCP socket.
struct Listener {
  struct Failure: Error { let message: String }

  let descriptor: Int32
  /// As `127.0.0.1:8042` or `[::1]:8042`.
  let address: String
  let port: UInt16
  /// Whether the address is a loopback address.
  let isLoopback: Bool

  init(host: String, port: UInt16) throws(Failure) {
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    hints.ai_flags = AI_NUMERICSERV
    var first: UnsafeMutablePointer<addrinfo>?
    let failure = getaddrinfo(host, String(port), &hints, &first)
    guard failure == 0, let first else {
      throw Failure(message: "\(host): \(String(cString: gai_strerror(failure)))")
    }
    defer { freeaddrinfo(first) }
    let found = first.pointee
    descriptor = socket(found.ai_family, found.ai_socktype, found.ai_protocol)
    var on: Int32 = 1
    // Without it, a restarted server could not bind while old connections are in TIME_WAIT.
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
    Socket.prepare(descriptor)
    guard descriptor >= 0, bind(descriptor, found.ai_addr, found.ai_addrlen) == 0,
      listen(descriptor, 4096) == 0,
      let (name, port) = Listener.name(of: descriptor)
    else {
      let reason = String(cString: strerror(errno))
      close(descriptor)
      throw Failure(message: "cannot listen on \(host), port \(port): \(reason)")
    }
    self.port = port
    address = "\(name.contains(":") ? "[\(name)]" : name):\(port)"
    isLoopback = name == "::1" || name.hasPrefix("127.")
  }

  private static func name(of descriptor: Int32) -> (String, UInt16)? {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    var host = [CChar](repeating: 0, count: Int(NI_MAXHOST))
    var service = [CChar](repeating: 0, count: 32)
    // SAFETY: sockaddr_storage holds any address; both calls get its size.
    let failure = withUnsafeMutablePointer(to: &storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        guard getsockname(descriptor, address, &length) == 0 else { return Int32(-1) }
        return getnameinfo(
          address, length, &host, socklen_t(host.count), &service, socklen_t(service.count),
          NI_NUMERICHOST | NI_NUMERICSERV)
      }
    }
    guard failure == 0, let port = UInt16(text(service)) else { return nil }
    return (text(host), port)
  }

  private static func text(_ characters: [CChar]) -> String {
    String(decoding: characters.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}
