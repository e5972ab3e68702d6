import Glibc

/// Why the server could not begin.
package struct ServerError: Error, Equatable {
  package let message: String
}

/// A listening TCP socket.
struct Listener {
  let descriptor: Int32
  /// As `127.0.0.1:7007` or `[::1]:7007`.
  let address: String
  let port: UInt16

  /// Takes the first of the host's addresses that can be listened on.
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

    var error: Int32 = 0
    var candidate: UnsafeMutablePointer<addrinfo>? = first
    while let address = candidate {
      if let listener = Listener(address.pointee, error: &error) {
        self = listener
        return
      }
      candidate = address.pointee.ai_next
    }
    throw ServerError(message: "cannot listen on \(host), port \(port): \(String(cString: strerror(error)))")
  }

  private init?(_ candidate: addrinfo, error: inout Int32) {
    let descriptor = socket(candidate.ai_family, candidate.ai_socktype, candidate.ai_protocol)
    guard descriptor >= 0 else {
      error = errno
      return nil
    }
    Socket.prepare(descriptor)
    // Without it a restarted server would have to wait until old connections are forgotten.
    Socket.set(SOL_SOCKET, SO_REUSEADDR, on: descriptor)
    guard bind(descriptor, candidate.ai_addr, candidate.ai_addrlen) == 0, listen(descriptor, 4096) == 0,
      let (address, port) = Listener.name(of: descriptor)
    else {
      error = errno
      close(descriptor)
      return nil
    }
    self.descriptor = descriptor
    self.address = address
    self.port = port
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
    guard failure == 0 else { return nil }
    let (name, number) = (text(host), text(service))
    guard let port = UInt16(number) else { return nil }
    return (name.contains(":") ? "[\(name)]:\(number)" : "\(name):\(number)", port)
  }

  private static func text(_ characters: [CChar]) -> String {
    String(decoding: characters.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}
