/// Limits on input from outside.
package enum Limits {
  static let headBytes = 16 << 10
  static let jsonBytes = 1 << 20
  /// The size of a photo's file.
  package static let fileBytes = 24 << 20
  static let fileTooLarge = "the file is larger than \(fileBytes >> 20) MiB"
  /// How many files are received, downloaded or developed at a time. Others wait unread.
  static let filesAtOnce = 6
  static let connections = 256
  /// How many bytes of events may be pending for a page.
  static let unreadEvents = 4 << 20
  /// A connection ends after so many seconds without progress by its client.
  static let patience = 30
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
  package var headers: [String: String] = [:]
  package var body: [UInt8] = []
  /// Closes the connection after the response, because the rest of the request was not read.
  package var closes = false

  package static func error(_ status: Int, _ message: String, closes: Bool = false) -> Response {
    Response(status: status, body: JSON.encode(["error": message]), closes: closes)
  }

  /// The head; the body follows.
  func head(closing: Bool) -> [UInt8] {
    var text = "HTTP/1.1 \(status) \(Response.reasons[status] ?? "Status")\r\n"
    var all = headers
    all["Content-Type"] = type
    if type != Response.eventStream { all["Content-Length"] = String(body.count) }
    if closing { all["Connection"] = "close" }
    // The page loads nothing from elsewhere, and must not be framed.
    all["Content-Security-Policy"] =
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
      + "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    all["X-Content-Type-Options"] = "nosniff"
    // No other page in the browser may show the photos.
    all["Cross-Origin-Resource-Policy"] = "same-origin"
    all["Cache-Control"] = all["Cache-Control"] ?? "no-store"
    for (name, value) in all.sorted(by: { $0.key < $1.key }) { text += "\(name): \(value)\r\n" }
    return Array((text + "\r\n").utf8)
  }

  static let eventStream = "text/event-stream"

  private static let reasons = [
    200: "OK", 201: "Created", 204: "No Content", 400: "Bad Request", 403: "Forbidden", 404: "Not Found",
    405: "Method Not Allowed", 409: "Conflict", 410: "Gone", 411: "Length Required", 413: "Content Too Large",
    422: "Unprocessable Content", 431: "Request Header Fields Too Large", 501: "Not Implemented",
    503: "Service Unavailable", 507: "Insufficient Storage",
  ]
}
