import Glibc

/// The system calls on a connection, with an enum for what can come of them.
enum Socket {
  enum Received {
    case bytes(Int)
    /// Nothing is there now.
    case nothing
    /// The other side sends no more.
    case end
    case failed(errno: Int32)
  }

  static func receive(_ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer) -> Received {
    while true {
      let count = recv(descriptor, buffer.baseAddress, buffer.count, 0)
      if count > 0 { return .bytes(count) }
      if count == 0 { return .end }
      if errno == EINTR { continue }
      return errno == EAGAIN ? .nothing : .failed(errno: errno)
    }
  }

  enum Sent {
    /// How many bytes the kernel took: all of them, or fewer because it has no more room.
    case bytes(Int)
    case failed(errno: Int32)
  }

  static func send(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) -> Sent {
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
        return .failed(errno: errno)
      }
    }
    return .bytes(sent)
  }

  enum Accepted {
    case connection(Int32)
    /// Nobody waits.
    case nobody
    /// No descriptor or no memory for it, most likely; the client goes on waiting.
    case cannot(errno: Int32)
  }

  static func accept(from listener: Int32) -> Accepted {
    while true {
      let connection = Glibc.accept(listener, nil, nil)
      if connection >= 0 {
        prepare(connection)
        // An echo should not wait for more to send along.
        set(Int32(IPPROTO_TCP), TCP_NODELAY, on: connection)
        return .connection(connection)
      }
      switch errno {
      case EAGAIN: return .nobody
      // What went wrong on the way to a single client is reported here, and over with that client.
      case EINTR, ECONNABORTED, EPROTO, EPERM, ENETDOWN, ENETUNREACH, EHOSTDOWN, EHOSTUNREACH: continue
      default: return .cannot(errno: errno)
      }
    }
  }

  /// Makes a descriptor one that never blocks and is not inherited.
  static func prepare(_ descriptor: Int32) {
    _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
  }

  static func set(_ level: Int32, _ option: Int32, on descriptor: Int32) {
    var on: Int32 = 1
    setsockopt(descriptor, level, option, &on, socklen_t(MemoryLayout<Int32>.size))
  }
}
