import Glibc

/// The system calls on sockets, none of which blocks.
enum Socket {
  enum Transfer {
    /// At least one byte was received; for sending, as many as the kernel had room for.
    case bytes(Int)
    /// Nothing can be received now.
    case nothing
    /// The other side sends no more.
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

  /// A connection that waits to be accepted; nil if there is none, or no descriptor for it.
  static func accept(from listener: Int32) -> (connection: Int32?, isOutOfDescriptors: Bool) {
    while true {
      let connection = Glibc.accept(listener, nil, nil)
      if connection >= 0 {
        prepare(connection)
        return (connection, false)
      }
      switch errno {
      // What went wrong with one client is reported here, and over with that client.
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
  /// Whether only this machine can reach it.
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
    // Without it a restarted server would have to wait until old connections are forgotten.
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
    // SAFETY: sockaddr_storage is made to hold any address; both calls are told its size.
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
