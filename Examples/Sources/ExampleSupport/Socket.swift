import Glibc

/// The system calls on sockets, with an enum for their outcomes.
package enum Socket {
  package enum Received {
    case bytes(Int)
    /// Nothing is there now.
    case nothing
    /// The other side sends no more.
    case end
    case failed
  }

  package static func receive(_ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer) -> Received {
    while true {
      let count = recv(descriptor, buffer.baseAddress, buffer.count, 0)
      if count > 0 { return .bytes(count) }
      if count == 0 { return .end }
      if errno != EINTR { return errno == EAGAIN ? .nothing : .failed }
    }
  }

  /// - Returns: how many bytes the kernel took: all of them, or fewer because it has no more room; nil if the
  ///   connection is broken.
  package static func send(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) -> Int? {
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

  package enum Accepted {
    case connection(Int32)
    /// No client waits.
    case nothing
    /// Usually no descriptor or no memory is left; the client goes on waiting.
    case failed(errno: Int32)
  }

  package static func accept(from listener: Int32) -> Accepted {
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
  package static func prepare(_ descriptor: Int32) {
    _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
  }

  package static func set(_ level: Int32, _ option: Int32, on descriptor: Int32) {
    var on: Int32 = 1
    setsockopt(descriptor, level, option, &on, socklen_t(MemoryLayout<Int32>.size))
  }
}

/// Why a server could not start.
package struct ServerError: Error, Equatable {
  package let message: String
}

/// A listening TCP socket.
package struct Listener {
  package let descriptor: Int32
  package let port: UInt16
  /// Such as `127.0.0.1:7007` or `[::1]:7007`.
  package let address: String

  /// Listens on the first of the host's addresses that allows it.
  package init(host: String, port: UInt16) throws(ServerError) {
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
      if let (descriptor, port) = Listener.listen(on: address.pointee) {
        self.descriptor = descriptor
        self.port = port
        self.address = "\(host.contains(":") ? "[\(host)]" : host):\(port)"
        return
      }
      candidate = address.pointee.ai_next
    }
    throw ServerError(message: "cannot listen on \(host), port \(port): \(describe(errno: errno))")
  }

  /// Nil, with the reason in `errno`, if that address cannot be listened on.
  private static func listen(on candidate: addrinfo) -> (descriptor: Int32, port: UInt16)? {
    let descriptor = socket(candidate.ai_family, candidate.ai_socktype, candidate.ai_protocol)
    guard descriptor >= 0 else { return nil }
    Socket.prepare(descriptor)
    // Otherwise a restarted server would have to wait until the kernel has forgotten old connections.
    Socket.set(SOL_SOCKET, SO_REUSEADDR, on: descriptor)
    guard bind(descriptor, candidate.ai_addr, candidate.ai_addrlen) == 0,
      Glibc.listen(descriptor, 4096) == 0,
      let port = Listener.port(of: descriptor)
    else {
      let cause = errno
      close(descriptor)
      errno = cause
      return nil
    }
    return (descriptor, port)
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
