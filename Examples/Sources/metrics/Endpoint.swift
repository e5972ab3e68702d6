import ExampleSupport
import Glibc

/// Answers `GET /metrics`: a read source on a listening socket, and one on each connection.
// SAFETY: the variables are OWNED BY `queue`, a serial queue.
final class Endpoint: @unchecked Sendable {
  /// Such as `127.0.0.1:9464`.
  let address: String
  private let queue = DispatchQueue(label: "metrics.endpoint")
  private let listener: Listener
  private let answer: @Sendable (Exposition.Format) -> String
  private let source: any DispatchSourceProtocol
  private var requests: [Int32: Request] = [:]

  static let most = 64
  static let patience = DispatchTimeInterval.seconds(5)

  /// - Parameter answer: called on a queue of the endpoint.
  init(port: UInt16, _ answer: @escaping @Sendable (Exposition.Format) -> String) throws(ServerError) {
    // Metrics reveal much about a program: the endpoint listens on 127.0.0.1 only.
    listener = try Listener(host: "127.0.0.1", port: port)
    address = listener.address
    self.answer = answer
    source = DispatchSource.makeReadSource(fileDescriptor: listener.descriptor, queue: queue)
    source.setEventHandler { [unowned self] in accept() }
    source.setCancelHandler { [descriptor = listener.descriptor] in close(descriptor) }
    source.activate()
  }

  deinit { source.cancel() }

  // MARK: On the queue

  private func accept() {
    guard case .connection(let client) = Socket.accept(from: listener.descriptor) else { return }
    guard requests.count < Endpoint.most else {
      close(client)
      return
    }
    let request = Request(client, queue)
    requests[client] = request
    request.source.setEventHandler { [unowned self] in read(request) }
    // The kernel watches the descriptor until the source is cancelled; it may not be closed earlier.
    request.source.setCancelHandler { [unowned self] in
      close(client)
      requests[client] = nil
    }
    request.source.activate()
    // A client that says nothing does not keep its place.
    queue.asyncAfter(deadline: .now() + Endpoint.patience) { [weak request] in request?.source.cancel() }
  }

  private func read(_ request: Request) {
    switch request.read() {
    case .incomplete: break
    case .unusable: request.source.cancel()
    case .complete(let method, let path, let accept):
      respond(to: request, method, path, accept)
      request.source.cancel()
    }
  }

  private func respond(to request: Request, _ method: String, _ path: String, _ accept: String?) {
    let format = Exposition.Format(accepting: accept)
    guard method == "GET" else {
      return request.send(
        "405 Method Not Allowed", "text/plain; charset=utf-8", "only GET\n", "Allow: GET\r\n")
    }
    guard path == "/metrics" else {
      return request.send("404 Not Found", "text/plain; charset=utf-8", "see /metrics\n")
    }
    request.send("200 OK", format.contentType, answer(format))
  }
}

/// One request. The connection is closed after the answer.
// SAFETY: OWNED BY the endpoint's queue.
private final class Request: @unchecked Sendable {
  enum State {
    case incomplete
    /// The client has gone, or sends no end.
    case unusable
    case complete(method: String, path: String, accept: String?)
  }

  let source: any DispatchSourceProtocol
  private let descriptor: Int32
  private var head: [UInt8] = []

  private static let longest = 8192

  init(_ descriptor: Int32, _ queue: DispatchQueue) {
    self.descriptor = descriptor
    source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
  }

  func read() -> State {
    let isGone = withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 16) { buffer in
      switch Socket.receive(descriptor, into: buffer) {
      case .bytes(let count): head += buffer[..<count]
      case .nothing: break
      case .end, .failed: return true
      }
      return false
    }
    if isGone || head.count > Request.longest { return .unusable }
    let text = String(decoding: head, as: UTF8.self)
    guard let end = text.range(of: "\r\n\r\n") else { return .incomplete }
    let lines = text[..<end].split(separator: "\r\n")
    let words = (lines.first ?? "").split(separator: " ")
    guard words.count == 3, words[2].hasPrefix("HTTP/1.") else { return .unusable }
    let accept = lines.dropFirst().first { $0.lowercased().hasPrefix("accept:") }
    return .complete(
      method: String(words[0]), path: String(words[1].prefix { $0 != "?" }),
      accept: accept.map { String($0.dropFirst("accept:".count)) })
  }

  /// An answer fits into the socket's buffer, or the client reads while it is written: it has asked for it.
  func send(_ status: String, _ type: String, _ body: String, _ more: String = "") {
    let head =
      "HTTP/1.1 \(status)\r\nContent-Type: \(type)\r\nContent-Length: \(body.utf8.count)\r\n\(more)"
      + "Connection: close\r\n\r\n"
    _ = fcntl(descriptor, F_SETFL, 0)
    var patience = timeval(tv_sec: 5, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    Array((head + body).utf8).withUnsafeBytes { _ = Socket.send($0, to: descriptor) }
    shutdown(descriptor, Int32(SHUT_WR))
  }
}

extension String {
  /// Where `part` begins, without Foundation.
  fileprivate func range(of part: String) -> String.Index? {
    var place = startIndex
    while place < endIndex {
      if self[place...].hasPrefix(part) { return place }
      place = index(after: place)
    }
    return nil
  }
}
