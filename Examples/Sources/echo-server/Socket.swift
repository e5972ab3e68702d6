import ExampleSupport
import Glibc

/// The system calls on sockets, with an enum for their outcomes.
enum Socket {
  enum Received {
    case bytes(Int)
    /// Nothing is there now.
    case nothing
    /// The other side sends no more.
    case end
    case failed
  }

  static func receive(_ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer) -> Received {
    while true {
      let count = recv(descriptor, buffer.baseAddress, buffer.count, 0)
      if count > 0 { return .bytes(count) }
      if count == 0 { return .end }
      if errno != EINTR { return errno == EAGAIN ? .nothing : .failed }
    }
  }

  /// - Returns: how many bytes the kernel took: all of them, or fewer because it has no more room; nil if the
  ///   connection is broken.
  static func send(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) -> Int? {
    var sent = 0
    while sent < bytes.count {
      // SAFETY: stays within the buffer, as `sent` is below its count.
      let count = Glibc.send(
        descriptor, bytes.baseAddress! + sent, bytes.count - sent, Int32(MSG_NOSIGNAL))
      if count >= 0 {
        sent += count
      } else if errno == EAGAIN {
        break
      } else if errno != EINTR {
        return nil
      }
    }
    return sent
  }

  enum Accepted {
    case connection(Int32)
    /// No client waits.
    case nothing
    /// Usually no descriptor or no memory is left; the client goes on waiting.
    case failed(errno: Int32)
  }

  static func accept(from listener: Int32) -> Accepted {
    while true {
      let connection = Glibc.accept(listener, nil, nil)
      if connection >= 0 {
        prepare(connection)
        // An echo should not wait for more bytes to send along.
        set(Int32(IPPROTO_TCP), TCP_NODELAY, on: connection)
        return .connection(connection)
      }
      switch errno {
      case EAGAIN: return .nothing
      // Errors of one client's connection, which is gone then.
      case EINTR, ECONNABORTED, EPROTO, EPERM, ENETDOWN, ENETUNREACH, EHOSTDOWN, EHOSTUNREACH: continue
      default: return .failed(errno: errno)
      }
    }
  }

  /// Makes the descriptor non-blocking, and keeps it from child processes.
  static func prepare(_ descriptor: Int32) {
    _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
  }

  static func set(_ level: Int32, _ option: Int32, on descriptor: Int32) {
    var on: Int32 = 1
    setsockopt(descriptor, level, option, &on, socklen_t(MemoryLayout<Int32>.size))
  }
}

/// Why the server could not start.
struct ServerError: Error, Equatable {
  let message: String
}

/// A listening TCP socket.
struct Listener {
  let descriptor: Int32
  let port: UInt16

  /// Listens on the first of the host's addresses that allows it.
  init(host: String, port: UInt16) throws(ServerError) {
    var hints = addrinfo()
    hints.ai_family = AF_UNSPEC
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    hints.ai_flags = AI_NUMERICSERV
    var first: UnsafeMutablePointer<addrinfo>?
    let failure = getaddrinfo(host, String(port), &hints, &first)
    guard failure == 0, let first else {
      throw ServerError(message: "\(host): \(String(cString: gai_strerror(failure)))")
    }
    defer { freeaddrinfo(first) }

    var candidate: UnsafeMutablePointer<addrinfo>? = first
    while let address = candidate {
      if let listener = Listener(address.pointee) {
        self = listener
        return
      }
      candidate = address.pointee.ai_next
    }
    throw ServerError(message: "cannot listen on \(host), port \(port): \(describe(errno: errno))")
  }

  /// Nil, with the reason in `errno`, if that address cannot be listened on.
  private init?(_ candidate: addrinfo) {
    descriptor = socket(candidate.ai_family, candidate.ai_socktype, candidate.ai_protocol)
    guard descriptor >= 0 else { return nil }
    Socket.prepare(descriptor)
    // Otherwise a restarted server would have to wait until the kernel has forgotten old connections.
    Socket.set(SOL_SOCKET, SO_REUSEADDR, on: descriptor)
    guard bind(descriptor, candidate.ai_addr, candidate.ai_addrlen) == 0, listen(descriptor, 4096) == 0,
      let port = Listener.port(of: descriptor)
    else {
      let cause = errno
      close(descriptor)
      errno = cause
      return nil
    }
    self.port = port
  }

  private static func port(of descriptor: Int32) -> UInt16? {
    var address = sockaddr_in6()
    var length = socklen_t(MemoryLayout<sockaddr_in6>.size)
    // SAFETY: sockaddr_in6 has room for the addresses of both families, and the port of both is in the same place.
    let failure = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
    }
    return failure == 0 ? UInt16(bigEndian: address.sin6_port) : nil
  }
}

/// The number of descriptors that the process may open.
enum DescriptorLimit {
  /// Descriptors that are not connections: standard input and output, the listener, those of the runtime and the C
  /// library.
  static let reserve = 32

  /// Raises the soft limit as far as `connections` need and the hard limit allows. The soft one is usually 1,024, for
  /// programs with select().
  ///
  /// - Returns: how many connections there is room for, at most `connections`.
  static func makeRoom(for connections: Int) -> Int {
    var limit = rlimit()
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    guard getrlimit(resource, &limit) == 0 else { return connections }
    let wanted = rlim_t(connections + reserve)
    if limit.rlim_cur < wanted {
      var raised = limit
      raised.rlim_cur = min(wanted, limit.rlim_max)
      if setrlimit(resource, &raised) == 0 { limit = raised }
    }
    return limit.rlim_cur < wanted ? max(1, Int(limit.rlim_cur) - reserve) : connections
  }
}
