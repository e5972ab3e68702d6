import Concourse
import FoundationEssentials
import Glibc
import Testing

@testable import GooglyPuffKit

/// Values from any thread.
final class Collected<Value: Sendable>: @unchecked Sendable {  // SAFETY: GUARDED BY `queue`.
  private let queue = DispatchQueue(label: "test.collected")
  private var values: [Value] = []

  func append(_ value: Value) { queue.sync { values.append(value) } }
  func removeFirst() { _ = queue.sync { values.removeFirst() } }
  var all: [Value] { queue.sync { values } }
}

extension DispatchSemaphore {
  /// Waits for a signal that must come. The timeout is long because only a failing test reaches it.
  func comes() -> Bool { wait(timeout: .now() + .seconds(120)) == .success }
}

/// A sample photo.
func sample(_ name: String, file: String = #filePath) throws -> [UInt8] {
  let tests = URL(filePath: file).deletingLastPathComponent()
  return [UInt8](
    try Data(contentsOf: tests.appending(path: "../../Sources/GooglyPuffKit/Page/samples/\(name).jpg")))
}

/// A PNG that claims the given size, with empty chunks of the given types.
func png(width: Int, height: Int, chunks: [String] = ["IDAT", "IEND"]) -> [UInt8] {
  func number(_ value: Int) -> [UInt8] {
    (0..<4).reversed().map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) }
  }
  var bytes: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
  bytes += number(13) + Array("IHDR".utf8) + number(width) + number(height) + [8, 2, 0, 0, 0] + number(0)
  for chunk in chunks { bytes += number(0) + Array(chunk.utf8) + number(0) }
  return bytes
}

/// The answer of a server.
struct Answer {
  var status = 0
  var head = ""
  var body: [UInt8] = []
  var text: String { String(decoding: body, as: UTF8.self) }
}

/// A blocking connection to this machine.
final class Client: Sendable {
  let descriptor: Int32

  init(port: UInt16) throws {
    // Closed on exec: programs that other tests start must not inherit it.
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    // SAFETY: an address of the family and size that are given.
    let failure = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    try #require(failure == 0, "connect: \(String(cString: strerror(errno)))")
    var patience = timeval(tv_sec: 120, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
  }

  deinit {
    // Programs that other tests start may have inherited the descriptor.
    shutdown(descriptor, Int32(SHUT_RDWR))
    close(descriptor)
  }

  func send(_ bytes: [UInt8]) {
    var sent = 0
    while sent < bytes.count {
      let count = bytes.withUnsafeBytes {
        Glibc.send(descriptor, $0.baseAddress! + sent, $0.count - sent, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { return }
      sent += count
    }
  }

  /// Receives some bytes; none at the end of the connection, or after the timeout.
  func receive() -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: 64 << 10) { buffer, count in
      count = max(0, recv(descriptor, buffer.baseAddress, buffer.count, 0))
    }
  }

  /// The head of a request.
  static func head(_ method: String, _ path: String, port: UInt16, length: Int? = nil, _ more: String = "")
    -> [UInt8]
  {
    let length = length.map { "Content-Length: \($0)\r\n" } ?? ""
    return Array("\(method) \(path) HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\n\(length)\(more)\r\n".utf8)
  }

  /// Reads until the server closes the connection.
  func answer() -> Answer {
    var bytes: [UInt8] = []
    while case let more = receive(), !more.isEmpty { bytes += more }
    var answer = Answer()
    guard let end = bytes.indices.first(where: { bytes[$0...].starts(with: [13, 10, 13, 10]) }) else {
      return answer
    }
    answer.head = String(decoding: bytes[..<end], as: UTF8.self)
    answer.status = answer.head.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
    answer.body = Array(bytes[(end + 4)...])
    return answer
  }
}

func request(
  _ method: String, _ path: String, port: UInt16, _ body: [UInt8] = [], _ headers: String = ""
) throws -> Answer {
  let client = try Client(port: port)
  client.send(
    Client.head(method, path, port: port, length: body.count, "Connection: close\r\n" + headers) + body)
  return client.answer()
}
