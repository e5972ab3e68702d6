import ExampleSupport
import Glibc
import TestSupport
import Testing

@testable import metrics

@Suite("The endpoint of metrics", .timeLimit(.minutes(10)))
struct MetricsTests {
  /// What `GET` answers, as head and body.
  private func get(
    _ address: Substring, _ path: String = "/metrics", accept: String? = nil, method: String = "GET"
  )
    throws -> (head: String, body: String)
  {
    let descriptor = try ask(address, path, accept: accept, method: method)
    defer { close(descriptor) }
    return try answer(descriptor)
  }

  /// Sends a request on a connection of its own.
  private func ask(
    _ address: Substring, _ path: String = "/metrics", accept: String? = nil, method: String = "GET",
    isWhole: Bool = true
  )
    throws -> Int32
  {
    let port = try #require(UInt16(address.split(separator: ":").last ?? ""))
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var name = sockaddr_in()
    name.sin_family = sa_family_t(AF_INET)
    name.sin_port = port.bigEndian
    name.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    // SAFETY: a sockaddr_in is passed as a sockaddr with its own size.
    let failure = withUnsafePointer(to: &name) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    try #require(failure == 0)
    var patience = timeval(tv_sec: 20, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    let header = accept.map { "Accept: \($0)\r\n" } ?? ""
    let request = Array("\(method) \(path) HTTP/1.1\r\nHost: localhost\r\n\(header)\r\n".utf8)
    // In two parts, as networks may deliver it.
    for part in [request[..<10], request[10...]].prefix(isWhole ? 2 : 1) {
      part.withUnsafeBytes { _ = Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
    }
    return descriptor
  }

  private func answer(_ descriptor: Int32) throws -> (head: String, body: String) {
    var bytes: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: 65536)
    while case let count = recv(descriptor, &piece, piece.count, 0), count > 0 { bytes += piece[..<count] }
    let end = try #require(bytes.firstRange(of: Array("\r\n\r\n".utf8)))
    return (
      String(decoding: bytes[..<end.lowerBound], as: UTF8.self),
      String(decoding: bytes[end.upperBound...], as: UTF8.self)
    )
  }

  /// The queues of the program's work, as labels.
  private static let queues = [#"work.store"#, #"work.decoding \"JSON\""#, #"C:\\work\nsecond line"#]

  /// Starts the program, waits until it has counted an item of each queue, and reads what it says.
  private func scrape(accept: String? = nil) throws -> (head: String, body: String) {
    let program = ProgramRun("metrics", "--interval", "20")
    let line = program.outputLine()
    try #require(line.hasPrefix("metrics: http://127.0.0.1:") && line.hasSuffix("/metrics"))
    let address = line.dropFirst("metrics: http://".count).dropLast("/metrics".count)
    var answer = try get(address, accept: accept)
    while !Self.queues.allSatisfy({ answer.body.contains("_run_seconds_count{queue=\"\($0)\"}") }) {
      answer = try get(address, accept: accept)
    }
    program.send(SIGTERM)
    #expect(program.end() == 0)
    return answer
  }

  // `scrape` has seen that any text may be a label.
  @Test("what it says is OpenMetrics: names, units, series, labels, classes, end", .timeLimit(.minutes(10)))
  func openMetrics() throws {
    let (head, body) = try scrape()
    #expect(head.hasPrefix("HTTP/1.1 200 OK\r\n"))
    #expect(head.contains("\r\nContent-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"))
    #expect(head.contains("\r\nContent-Length: \(body.utf8.count)\r\n"))
    let faults = OpenMetricsCheck.faults(in: body)
    #expect(faults.isEmpty, "\(faults)")
    #expect(body.contains("# UNIT concourse_queue_run_seconds seconds\n"))
    #expect(body.contains(#"concourse_pool_threads{band="concourse",state="active"} "#))
    #expect(body.contains(#"concourse_queue_run_seconds_bucket{queue="work.store",le="1.0"} "#))
    #expect(body.contains("concourse_events_lost_total 0\n"))
  }

  @Test("a client that wants the older format gets it")
  func olderFormat() throws {
    let (head, body) = try scrape(accept: "text/plain;version=0.0.4")
    #expect(head.contains("\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"))
    #expect(body.contains("# TYPE concourse_queue_items_started_total counter\n"))
    #expect(!body.contains("# EOF") && !body.contains("# UNIT"))
  }

  @Test(
    "promtool finds nothing wrong with the older format",
    .enabled(if: promtool != nil, "needs promtool, of the package prometheus"))
  func checkedByPromtool() throws {
    let tool = try #require(Self.promtool)
    let (_, body) = try scrape(accept: "text/plain;version=0.0.4")
    let files = TemporaryTree()
    let path = files.path("metrics")
    let file = open(path, O_WRONLY | O_CREAT, 0o600)
    #expect(writeAll(Bytes(body.utf8), to: file) == 0)
    close(file)
    let check = ProgramRun("/bin/sh", "-c", "exec '\(tool)' check metrics <'\(path)'")
    let status = check.end()
    #expect(status == 0, "\(check.outputText)\(check.errorText)")
    #expect(check.errorText.isEmpty)
  }

  private static var promtool: String? {
    let folders = getenv("PATH").map { String(cString: $0) } ?? ""
    return folders.split(separator: ":").map { "\($0)/promtool" }.first { access($0, X_OK) == 0 }
  }

  @Test("other paths and methods are refused")
  func refusals() throws {
    let program = ProgramRun("metrics")
    let address = program.outputLine().dropFirst("metrics: http://".count).dropLast("/metrics".count)
    #expect(try get(address, "/").head.hasPrefix("HTTP/1.1 404 Not Found\r\n"))
    let posted = try get(address, method: "POST")
    #expect(posted.head.hasPrefix("HTTP/1.1 405 Method Not Allowed\r\n"))
    #expect(posted.head.contains("\r\nAllow: GET\r\n"))
    program.send(SIGINT)
    #expect(program.end() == 0)
  }

  @Test("a client that does not read its answer delays no other client, and gets all of it later")
  func slowClient() throws {
    let size = 32 << 20
    let endpoint = try Endpoint(port: 0, patience: .seconds(100)) { _ in String(repeating: "x", count: size) }
    let slow = try ask(endpoint.address[...])
    defer { close(slow) }
    #expect(try get(endpoint.address[...], "/").head.hasPrefix("HTTP/1.1 404 Not Found\r\n"))
    #expect(try answer(slow).body.utf8.count == size)
  }

  @Test("a request ends with an empty line, in whatever parts it comes")
  func parts() throws {
    let text = Array("GET /metrics?x HTTP/1.1\r\nAccept: text/plain\r\n\r\n".utf8)
    for length in 1...text.count {
      let request = Request()
      for start in stride(from: 0, to: text.count, by: length) {
        #expect(!request.isComplete)
        request.append(
          text[start..<min(start + length, text.count)].withUnsafeBytes { DispatchData(bytes: $0) })
      }
      #expect(request.isComplete)
      let (method, path, accept) = try #require(request.parsed())
      #expect(method == "GET" && path == "/metrics" && accept == " text/plain")
    }
  }

  @Test("a program without descriptors answers its clients once it has some again")
  func noDescriptors() throws {
    // Room for a few clients; those that say nothing lose their places after some seconds.
    let program = ProgramRun("metrics", [], prelude: "ulimit -n 40")
    let address = program.outputLine().dropFirst("metrics: http://".count).dropLast("/metrics".count)
    let silent = try (0..<60).map { _ in try ask(address, "/", method: "GET", isWhole: false) }
    defer { for descriptor in silent { close(descriptor) } }
    #expect(try get(address, "/").head.hasPrefix("HTTP/1.1 404 Not Found\r\n"))
    program.send(SIGTERM)
    #expect(program.end() == 0)
  }

  @Test("a wrong command line is named")
  func usage() {
    let program = ProgramRun("metrics", "--port", "70000")
    #expect(program.end() == 2)
    #expect(program.errorText.contains("--port: not a number from 0 to 65535: 70000"))
  }

  @Test("the checker of these tests finds what is wrong")
  func checker() {
    let good = "# TYPE a counter\n# HELP a A.\na_total{q=\"x\"} 1\n# EOF\n"
    #expect(OpenMetricsCheck.faults(in: good).isEmpty)
    for bad in [
      "# TYPE a counter\n# HELP a A.\na_total{q=\"x\"} 1\n",
      "# TYPE a counter\n# HELP a A.\na{q=\"x\"} 1\n# EOF\n",
      "# TYPE a counter\n# HELP a A.\na_total{q=\"x\"} 1\na_total{q=\"x\"} 2\n# EOF\n",
      "# TYPE a gauge\n# HELP a A.\na{q=\"x\",r=\"y\"} 1\na{r=\"y\",q=\"x\"} 2\n# EOF\n",
      "# TYPE a gauge\n# UNIT a seconds\n# HELP a A.\na 1\n# EOF\n",
      "# TYPE a gauge\n# HELP a A.\na{q=\"x\ny\"} 1\n# EOF\n",
      "# TYPE a gauge\n# HELP a A.\na{q=\"x\"y\"} 1\n# EOF\n",
      "# TYPE a gauge\n# HELP a A.\nb 1\n# EOF\n",
      "# TYPE a histogram\n# HELP a A.\na_bucket{le=\"1\"} 2\na_bucket{le=\"+Inf\"} 1\na_sum 1\na_count 1\n# EOF\n",
      "# TYPE a histogram\n# HELP a A.\na_bucket{le=\"1\"} 2\na_bucket{le=\"+Inf\"} 3\na_sum 1\na_count 2\n# EOF\n",
    ] {
      #expect(!OpenMetricsCheck.faults(in: bad).isEmpty, "\(bad)")
    }
  }
}

/// The rules of the OpenMetrics text format that a mistake here could break.
enum OpenMetricsCheck {
  static func faults(in text: String) -> [String] {
    var faults: [String] = []
    var lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    if lines.popLast() != "" || lines.popLast() != "# EOF" { faults.append("it does not end with # EOF") }
    var (family, kind, families, series) = ("", "", Set<String>(), Set<String>())
    var buckets: (series: String, last: Double, count: Double)?
    for line in lines {
      if line.hasPrefix("# ") {
        let words = line.split(separator: " ", maxSplits: 3).map(String.init)
        guard words.count == 4 else {
          faults.append("cut off: \(line)")
          continue
        }
        switch words[1] {
        case "TYPE":
          (family, kind) = (words[2], words[3])
          if !families.insert(family).inserted { faults.append("twice: \(line)") }
          if kind == "counter" && family.hasSuffix("_total") { faults.append("with _total: \(line)") }
        case "UNIT":
          if words[2] != family || !family.hasSuffix("_" + words[3]) { faults.append("unit: \(line)") }
        case "HELP": if words[2] != family { faults.append("of another family: \(line)") }
        default: faults.append("unknown: \(line)")
        }
        continue
      }
      guard let sample = Sample(line) else {
        faults.append("no sample: \(line)")
        continue
      }
      let suffixes =
        ["counter": ["_total"], "gauge": [""], "histogram": ["_bucket", "_sum", "_count"]][kind] ?? []
      if !suffixes.contains(where: { sample.name == family + $0 }) {
        faults.append("not of \(family): \(line)")
      }
      // Not the dictionary's own description: the order of its keys differs between equal ones.
      let labels = sample.labels.sorted { $0.key < $1.key }.description
      if !series.insert(sample.name + labels).inserted {
        faults.append("twice: \(line)")
      }
      if sample.name == family + "_bucket" {
        let others = sample.labels.filter { $0.key != "le" }.sorted { $0.key < $1.key }.description
        if let before = buckets, before.series == others, before.last > sample.value {
          faults.append("less than the class before: \(line)")
        }
        buckets = (others, sample.value, sample.value)
      } else if sample.name == family + "_count", kind == "histogram" {
        if buckets?.count != sample.value { faults.append("not the count of +Inf: \(line)") }
        buckets = nil
      }
    }
    return faults
  }

  struct Sample {
    var name = ""
    var labels: [String: String] = [:]
    var value = 0.0

    /// Nil unless the line is exactly one sample.
    init?(_ line: String) {
      var rest = Substring(line)
      name = String(rest.prefix { $0.isLetter || $0.isNumber || $0 == "_" })
      rest = rest.dropFirst(name.count)
      if rest.first == "{" {
        rest = rest.dropFirst()
        while rest.first != "}" {
          let label = rest.prefix { $0.isLetter || $0 == "_" }
          rest = rest.dropFirst(label.count)
          guard rest.hasPrefix("=\"") else { return nil }
          rest = rest.dropFirst(2)
          var value = ""
          while let character = rest.popFirst(), character != "\"" {
            guard character == "\\" else {
              value.append(character)
              continue
            }
            guard let escaped = rest.popFirst(), "\\\"n".contains(escaped) else { return nil }
            value.append(escaped == "n" ? "\n" : escaped)
          }
          if labels.updateValue(value, forKey: String(label)) != nil { return nil }
          if rest.first == "," { rest = rest.dropFirst() } else if rest.first != "}" { return nil }
        }
        rest = rest.dropFirst()
      }
      guard !name.isEmpty, rest.first == " ", let value = Double(rest.dropFirst()) else { return nil }
      self.value = value
    }
  }
}
