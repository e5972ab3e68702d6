import Testing

@testable import GooglyPuffKit

@Suite struct RequestParserTests {
  private func head(of text: String) throws -> RequestHead? {
    var parser = RequestParser()
    Array(text.utf8).withUnsafeBytes { parser.append($0) }
    return try parser.nextHead()
  }

  @Test func aRequestMayComeInAnyPieces() throws {
    let bytes = Array(
      "POST /photos/7?name=a%20b&x HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabcGET".utf8)
    for size in [1, 2, 7, bytes.count] {
      var parser = RequestParser()
      var head: RequestHead?
      for start in stride(from: 0, to: bytes.count, by: size) {
        bytes[start..<min(start + size, bytes.count)].withUnsafeBytes { parser.append($0) }
        if head == nil { head = try parser.nextHead() }
      }
      #expect(head?.method == "POST")
      #expect(head?.path == ["photos", "7"])
      #expect(head?.query == ["name": "a b", "x": ""])
      #expect(head?.contentLength == 3)
      #expect(parser.takeBody(2) == Array("ab".utf8))
      #expect(parser.takeBody(1) == Array("c".utf8))
      #expect(parser.takeBody(9) == Array("GET".utf8))
      #expect(parser.isEmpty)
    }
  }

  @Test(arguments: [
    ("GET\r\n\r\n", 400), ("GET / HTTP/2\r\n\r\n", 400), ("GET http://x/ HTTP/1.1\r\n\r\n", 400),
    ("GET /%zz HTTP/1.1\r\n\r\n", 400), ("GET /%c3%28 HTTP/1.1\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nA : b\r\n\r\n", 400), ("GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
    ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
    ("POST / HTTP/1.1\r\n\r\n", 411),
    ("GET /" + String(repeating: "x", count: 20_000) + " HTTP/1.1\r\n\r\n", 431),
    (String(repeating: "x", count: 20_000), 431),
  ])
  func malformedRequestsAreRefused(text: String, status: Int) {
    #expect(throws: RequestParser.Refusal.self) {
      do { _ = try head(of: text) } catch let refusal as RequestParser.Refusal {
        #expect(refusal.status == status)
        throw refusal
      }
    }
  }

  @Test func anEncodedSlashIsNoSeparator() throws {
    #expect(try head(of: "GET /samples/..%2f..%2fetc HTTP/1.1\r\n\r\n")?.path == ["samples", "../../etc"])
    #expect(try head(of: "GET //a/../b HTTP/1.1\r\n\r\n")?.path == ["a", "..", "b"])
  }

  @Test(arguments: [
    ("127.0.0.1:80", "127.0.0.1", true), ("127.0.0.1:80", "localhost", true), ("[::1]:80", "[::1]:80", true),
    ("127.0.0.1:80", "evil.example", false), ("127.0.0.1:80", "evil.example:80", false),
    ("127.0.0.1:8042", "localhost:8042", true), ("127.0.0.1:8042", "localhost", false),
    ("my-machine:8042", "my-machine:8042", true), ("my-machine:8042", "evil.example:8042", false),
    ("0.0.0.0:8042", "my-machine:8042", true),
  ])
  func theHostIsThisMachine(address: String, host: String, isTrusted: Bool) {
    var head = RequestHead()
    head.headers["host"] = host
    #expect(Router.isTrusted(head, address: address) == isTrusted)
    head.headers["origin"] = "http://\(host)"
    #expect(Router.isTrusted(head, address: address) == isTrusted)
    head.headers["origin"] = "http://evil.example:1"
    #expect(!Router.isTrusted(head, address: address))
  }

  @Test func rubbishIsNeverMoreThanRefused() {
    // A fixed seed makes a failure reproducible.
    var state: UInt64 = 42
    func next() -> UInt64 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return state >> 33
    }
    let pieces = [
      "GET ", "/", "%2", "%41", " HTTP/1.1", "\r\n", "\r", "\n", ":", "content-length: 5", "é", "\u{0}", "?",
      "&=", "x",
    ]
    for _ in 0..<5_000 {
      var text = ""
      for _ in 0..<next() % 14 { text += pieces[Int(next()) % pieces.count] }
      _ = try? head(of: text + "\r\n\r\n")
    }
  }
}
