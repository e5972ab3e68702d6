import ExampleSupport
import Glibc

/// Answers `GET /metrics`: a read source on a listening socket, and a channel for each connection, so that no client
/// keeps the others waiting.
// SAFETY: the variables are OWNED BY `queue`, a serial queue.
final class Endpoint: @unchecked Sendable {
  /// Such as `127.0.0.1:9464`.
  let address: String
  private let queue = DispatchQueue(label: "metrics.endpoint")
  private let listener: Listener
  private let patience: DispatchTimeInterval
  private let answer: @Sendable (Exposition.Format) -> String
  private let source: any DispatchSourceProtocol
  private var connections = 0

  static let most = 64

  /// - Parameters:
  ///   - patience: How long a client may take.
  ///   - answer: Called on a queue of the endpoint.
  init(
    port: UInt16, patience: DispatchTimeInterval = .seconds(5),
    _ answer: @escaping @Sendable (Exposition.Format) -> String
  ) throws(ServerError) {
    // Metrics reveal much about a program: the endpoint listens on 127.0.0.1 only.
    listener = try Listener(host: "127.0.0.1", port: port)
    address = listener.address
    (self.patience, self.answer) = (patience, answer)
    source = DispatchSource.makeReadSource(fileDescriptor: listener.descriptor, queue: queue)
    source.setEventHandler { [weak self] in self?.accept() }
    source.setCancelHandler { [descriptor = listener.descriptor] in close(descriptor) }
    source.activate()
  }

  deinit { source.cancel() }

  // MARK: On the queue

  private func accept() {
    switch Socket.accept(from: listener.descriptor) {
    case .nothing: break
    case .connection(let client) where connections >= Endpoint.most: close(client)
    case .connection(let client): serve(client)
    case .failed:
      // No descriptor is left. The source would call at once again, as the client goes on waiting.
      source.suspend()
      queue.asyncAfter(deadline: .now() + .milliseconds(100)) { [self] in source.resume() }
    }
  }

  private func serve(_ client: Int32) {
    connections += 1
    let channel = DispatchIO(type: .stream, fileDescriptor: client, queue: queue) { [weak self] _ in
      close(client)
      self?.connections -= 1
    }
    channel.setLimit(lowWater: 1)
    let request = Request()
    channel.read(offset: 0, length: Request.longest, queue: queue) { [weak self] isDone, data, error in
      if request.isComplete { return }
      request.append(data ?? .empty)
      if request.isComplete, let response = self?.response(to: request) {
        response.withUnsafeBytes { bytes in
          channel.write(offset: 0, data: DispatchData(bytes: bytes), queue: .global()) { isDone, _, _ in
            guard isDone else { return }
            shutdown(client, Int32(SHUT_WR))
            channel.close(flags: .stop)
          }
        }
      } else if request.isComplete || isDone {
        // Unusable, too long, or the client has gone.
        channel.close(flags: .stop)
      }
    }
    // A client that says nothing, or does not read, does not keep its place.
    queue.asyncAfter(deadline: .now() + patience) { channel.close(flags: .stop) }
  }

  /// nil if it is not a request.
  private func response(to request: Request) -> [UInt8]? {
    guard let (method, path, accept) = request.parsed() else { return nil }
    let format = Exposition.Format(accepting: accept)
    guard method == "GET" else {
      return Self.response(
        "405 Method Not Allowed", "text/plain; charset=utf-8", "only GET\n", "Allow: GET\r\n")
    }
    guard path == "/metrics" else {
      return Self.response("404 Not Found", "text/plain; charset=utf-8", "see /metrics\n")
    }
    return Self.response("200 OK", format.contentType, answer(format))
  }

  private static func response(_ status: String, _ type: String, _ body: String, _ more: String = "")
    -> [UInt8]
  {
    let head =
      "HTTP/1.1 \(status)\r\nContent-Type: \(type)\r\nContent-Length: \(body.utf8.count)\r\n\(more)"
      + "Connection: close\r\n\r\n"
    return Array((head + body).utf8)
  }
}

/// The head of one request. The connection is closed after the answer.
// SAFETY: OWNED BY the endpoint's queue.
final class Request: @unchecked Sendable {
  static let longest = 8192
  private static let end = Array("\r\n\r\n".utf8)

  private var head: [UInt8] = []
  /// Whether the empty line has come.
  private(set) var isComplete = false

  func append(_ data: DispatchData) {
    // The end may have begun in the part before.
    var place = max(0, head.count - Request.end.count + 1)
    head += data
    while !isComplete, place + Request.end.count <= head.count {
      isComplete = head[place..<place + Request.end.count].elementsEqual(Request.end)
      place += 1
    }
  }

  /// nil if it is not a request.
  func parsed() -> (method: String, path: String, accept: String?)? {
    let lines = String(decoding: head, as: UTF8.self).split(separator: "\r\n")
    let words = (lines.first ?? "").split(separator: " ")
    guard words.count == 3, words[2].hasPrefix("HTTP/1.") else { return nil }
    let accept = lines.dropFirst().first { $0.lowercased().hasPrefix("accept:") }
    return (
      String(words[0]), String(words[1].prefix { $0 != "?" }),
      accept.map { String($0.dropFirst("accept:".count)) }
    )
  }
}
