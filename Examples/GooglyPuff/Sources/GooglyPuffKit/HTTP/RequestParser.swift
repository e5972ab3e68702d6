import Foundation

/// Parses requests from the bytes that a connection receives. A pure type: it does no I/O.
package struct RequestParser {
  private var bytes: [UInt8] = []
  /// Where the search for the end of the head continues.
  private var searched = 0

  package init() {}

  package mutating func append(_ more: UnsafeRawBufferPointer) { bytes.append(contentsOf: more) }

  package var isEmpty: Bool { bytes.isEmpty }

  /// The head of the next request, or nil if it is incomplete.
  ///
  /// - Throws: the error to answer an invalid request with.
  package mutating func nextHead() throws(Refusal) -> RequestHead? {
    guard let end = endOfHead() else {
      guard bytes.count <= Limits.headBytes else { throw Refusal(431, "the head is too large") }
      return nil
    }
    guard end <= Limits.headBytes else { throw Refusal(431, "the head is too large") }
    let text = String(decoding: bytes[..<end], as: UTF8.self)
    bytes.removeFirst(end + 4)
    searched = 0
    return try RequestParser.parse(text)
  }

  /// Up to `count` bytes of the body.
  package mutating func takeBody(_ count: Int) -> [UInt8] {
    if bytes.count <= count {
      defer { bytes = [] }
      return bytes
    }
    defer { bytes.removeFirst(count) }
    return Array(bytes[..<count])
  }

  /// Why a request is invalid. The connection has to be closed: the start of the next request is unknown.
  package struct Refusal: Error, Equatable {
    package let status: Int
    package let message: String

    init(_ status: Int, _ message: String) {
      self.status = status
      self.message = message
    }
  }

  private mutating func endOfHead() -> Int? {
    let end: [UInt8] = [13, 10, 13, 10]
    while searched + 4 <= bytes.count {
      if bytes[searched..<searched + 4].elementsEqual(end) { return searched }
      searched += 1
    }
    return nil
  }

  private static func parse(_ text: String) throws(Refusal) -> RequestHead {
    let malformed = Refusal(400, "not a request of HTTP/1.1")
    // "\r\n" is a single Character.
    var lines = text.split(separator: "\r\n", omittingEmptySubsequences: false)[...]
    guard let line = lines.popFirst() else { throw malformed }
    let words = line.split(separator: " ", omittingEmptySubsequences: false)
    guard words.count == 3, words[2] == "HTTP/1.1" || words[2] == "HTTP/1.0", words[1].first == "/" else {
      throw malformed
    }
    var head = RequestHead(method: String(words[0]))
    for line in lines {
      guard let colon = line.firstIndex(of: ":") else { throw malformed }
      let name = line[..<colon].lowercased()
      let value = String(line[line.index(after: colon)...].drop { $0 == " " || $0 == "\t" })
      guard !name.isEmpty, !name.contains(where: \.isWhitespace) else { throw malformed }
      // With two lengths, a proxy and this server could disagree on where the body ends.
      if name == "content-length", head.headers[name] != nil { throw malformed }
      head.headers[name] = value
    }
    if head.headers["transfer-encoding"] != nil { throw Refusal(411, "a body needs a Content-Length") }
    if let length = head.headers["content-length"] {
      guard length.utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }), Int(length) != nil else {
        throw malformed
      }
    } else if words[0] == "POST" {
      // A body would be taken for the next request.
      throw Refusal(411, "a POST needs a Content-Length")
    }
    if words[2] == "HTTP/1.0" { head.headers["connection"] = "close" }

    let target = words[1].split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    guard let path = target.first?.split(separator: "/").map(\.removingPercentEncoding) else {
      throw malformed
    }
    for part in path {
      guard let part else { throw malformed }
      head.path.append(part)
    }
    for pair in target.count > 1 ? target[1].split(separator: "&") : [] {
      let sides = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard let name = sides[0].removingPercentEncoding,
        let value = sides.count > 1 ? sides[1].removingPercentEncoding : ""
      else { throw malformed }
      head.query[name] = value
    }
    return head
  }
}
