import FoundationEssentials

/// Limits on input from outside.
package enum Limits {
  static let headBytes = 16 << 10
  static let jsonBytes = 1 << 20
  /// The size of a photo's file.
  package static let fileBytes = 24 << 20
  static let fileTooLarge = "the file is larger than \(fileBytes >> 20) MiB"
  /// How many uploads, and how many downloads, are received or developed at a time. Others wait unread.
  static let filesAtOnce = 4
  static let connections = 256
  /// How many of them may be event streams, which stay open for as long as a page does.
  static let streams = connections / 2
  /// How many bytes of events may be pending for a page.
  static let unreadEvents = 4 << 20
  /// How fast a client must send and receive, in bytes per second.
  static let slowest = 32 << 10
}

/// A request without its body.
package struct RequestHead: Equatable, Sendable {
  package var method = ""
  /// Split at slashes, then decoded: an encoded slash is not a separator.
  package var path: [String] = []
  package var query: [String: String] = [:]
  /// Keyed by lower-case name.
  package var headers: [String: String] = [:]

  package var contentLength: Int { headers["content-length"].flatMap { Int($0) } ?? 0 }
  package var wantsClose: Bool { headers["connection"]?.lowercased() == "close" }
}

package struct Response: Sendable {
  package var status = 200
  package var type = "application/json"
  package var body: [UInt8] = []
  /// Closes the connection after the response, because the rest of the request was not read.
  package var closes = false

  package static func error(_ status: Int, _ message: String, closes: Bool = false) -> Response {
    Response(status: status, body: JSON.encode(["error": message]), closes: closes)
  }

  /// The head; the body follows.
  func head(closing: Bool) -> [UInt8] {
    var text = "HTTP/1.1 \(status) \(Response.reasons[status] ?? "Status")\r\n"
    var all = ["Content-Type": type]
    if type != Response.eventStream { all["Content-Length"] = String(body.count) }
    if closing { all["Connection"] = "close" }
    // The page loads nothing from elsewhere, and must not be framed.
    all["Content-Security-Policy"] =
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
      + "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    all["X-Content-Type-Options"] = "nosniff"
    // No other page in the browser may show the photos.
    all["Cross-Origin-Resource-Policy"] = "same-origin"
    // The next run numbers its photos from 1 again.
    all["Cache-Control"] = "no-store"
    for (name, value) in all.sorted(by: { $0.key < $1.key }) { text += "\(name): \(value)\r\n" }
    return Array((text + "\r\n").utf8)
  }

  static let eventStream = "text/event-stream"

  private static let reasons = [
    200: "OK", 201: "Created", 204: "No Content", 400: "Bad Request", 403: "Forbidden", 404: "Not Found",
    405: "Method Not Allowed", 410: "Gone", 411: "Length Required", 413: "Content Too Large",
    431: "Request Header Fields Too Large", 507: "Insufficient Storage",
  ]
}

/// How to handle a request, decided from its head.
package enum Plan: Sendable {
  case answer(Response)
  case receive(Receiver)
  /// The connection becomes an event stream, passed to the closure. The closure returned is called when it has ended.
  case stream(@Sendable (EventStream) -> @Sendable () -> Void)

  /// Takes the body of a request.
  package struct Receiver: Sendable {
    /// The maximum size of the body, and the error message for a larger one.
    var limit = 0
    var tooLarge = "the request is too large"
    /// Whether the body is read only after the turnstile has admitted it.
    var takesTurn = false
    /// Called with the whole body; the answer may come from any queue, at any time.
    var received: @Sendable ([UInt8], Turnstile.Turn?, @escaping @Sendable (Response) -> Void) -> Void
    /// Called instead if the body does not arrive.
    var broken: @Sendable (String) -> Void = { _ in }
  }
}

/// JSON by FoundationEssentials, the part of Foundation that does not import Dispatch.
enum JSON {
  static func encode(_ value: some Encodable) -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    guard let data = try? encoder.encode(value) else { fatalError("a value that cannot be encoded as JSON") }
    return [UInt8](data)
  }

  static func decode<Value: Decodable>(_ type: Value.Type, from bytes: [UInt8]) -> Value? {
    try? JSONDecoder().decode(type, from: Data(bytes))
  }
}
