import ExampleSupport
import Glibc
import Testing

@testable import GooglyPuffKit

/// An HTTP server that misbehaves as its path says. Each client has a blocked thread.
final class MischiefServer: Sendable {
  let address: String
  let port: UInt16
  private let listener: Int32
  private let photo: [UInt8]

  init(photo: [UInt8] = []) throws {
    let listener = try Listener(host: "127.0.0.1", port: 0)
    // `accept` blocks here.
    _ = fcntl(listener.descriptor, F_SETFL, 0)
    self.listener = listener.descriptor
    self.photo = photo
    port = listener.port
    address = "http://\(listener.address)"
    let queue = DispatchQueue(label: "test.mischief", attributes: .concurrent)
    queue.async {
      while case let client = accept(listener.descriptor, nil, nil), client >= 0 {
        _ = fcntl(client, F_SETFD, FD_CLOEXEC)
        queue.async {
          self.serve(client)
          // Programs that other tests start may have inherited the descriptor.
          shutdown(client, Int32(SHUT_RDWR))
          close(client)
        }
      }
    }
  }

  func stop() {
    // Wakes the thread that accepts.
    shutdown(listener, Int32(SHUT_RDWR))
    close(listener)
  }

  private func serve(_ client: Int32) {
    var request: [UInt8] = []
    while !String(decoding: request, as: UTF8.self).contains("\r\n\r\n") {
      var buffer = [UInt8](repeating: 0, count: 4096)
      let count = recv(client, &buffer, buffer.count, 0)
      guard count > 0 else { return }
      request += buffer[..<count]
    }
    let path =
      String(decoding: request, as: UTF8.self).split(separator: " ").dropFirst().first.map(String.init) ?? ""
    switch path {
    case "/500": send(client, head("500 Internal Server Error", length: 0))
    case "/401":
      send(
        client,
        "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n"
          + "Connection: close\r\n\r\n")
    case "/text": send(client, head("200 OK", length: 5) + "<html")
    case "/empty": send(client, head("200 OK", length: 0))
    case "/redirect": send(client, head("302 Found", length: 0, location: "/photo"))
    case "/redirect-to-text": send(client, head("302 Found", length: 0, location: "/text"))
    case "/loop": send(client, head("302 Found", length: 0, location: "/loop"))
    case "/redirect-to-file": send(client, head("302 Found", length: 0, location: "file:///etc/passwd"))
    case "/redirect-to-upper-case":
      send(client, head("302 Found", length: 0, location: "HTTP://127.0.0.1:\(port)/text"))
    case "/huge": send(client, head("200 OK", length: 1 << 40))
    case "/break": send(client, head("200 OK", length: 100_000) + String(repeating: "x", count: 1_000))
    case "/rubbish": send(client, "\u{1}\u{2}\u{3} nonsense\r\n\r\nmore")
    case "/hang-up": break
    case "/silent": waitForEnd(client)
    case "/endless":
      send(client, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
      while send(client, String(repeating: "x", count: 1 << 16)) {}
    case "/flood":
      send(client, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
      let much = [UInt8](repeating: 0, count: 1 << 20)
      while send(client, much) {}
    case "/trickle":
      send(client, head("200 OK", length: 1 << 20))
      while send(client, "x") { usleep(20_000) }
    case "/slow":
      // The first bytes one at a time, then the rest.
      send(client, head("200 OK", length: photo.count))
      for byte in photo.prefix(20) {
        send(client, [byte])
        usleep(20_000)
      }
      send(client, Array(photo.dropFirst(20)))
    case "/photo":
      send(client, head("200 OK", length: photo.count))
      send(client, photo)
    default: send(client, head("404 Not Found", length: 0))
    }
  }

  private func head(_ status: String, length: Int, location: String? = nil) -> String {
    "HTTP/1.1 \(status)\r\nContent-Length: \(length)\r\nConnection: close\r\n"
      + (location.map { "Location: \($0)\r\n" } ?? "") + "\r\n"
  }

  @discardableResult private func send(_ client: Int32, _ text: String) -> Bool {
    send(client, Array(text.utf8))
  }

  @discardableResult private func send(_ client: Int32, _ bytes: [UInt8]) -> Bool {
    var sent = 0
    while sent < bytes.count {
      let count = bytes.withUnsafeBytes {
        Glibc.send(client, $0.baseAddress! + sent, $0.count - sent, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { return false }
      sent += count
    }
    return true
  }

  private func waitForEnd(_ client: Int32) {
    var byte: UInt8 = 0
    while recv(client, &byte, 1, 0) > 0 {}
  }
}
