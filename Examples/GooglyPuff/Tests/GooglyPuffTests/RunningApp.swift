import Concourse
import FoundationEssentials
import Glibc
import TestSupport
import Testing

@testable import GooglyPuffKit

/// A process of the built program. Its temporary directory is in `folder`.
final class RunningApp: @unchecked Sendable {  // SAFETY: `run` is used by the test's own thread.
  let port: UInt16
  let run: ProgramRun
  let folder = TemporaryTree()

  init() throws {
    run = ProgramRun("googlypuff", "--port", "0", prelude: "export TMPDIR=\(folder.root)")
    port = try #require(
      run.outputLine().split(separator: ":").last.flatMap { UInt16($0.dropLast()) }, "no address was printed")
  }

  /// Sends a signal, and returns the exit status.
  func end(_ signal: Int32) -> Int32 {
    run.send(signal)
    return run.end()
  }

  var leftFiles: [String] { (try? FileManager.default.contentsOfDirectory(atPath: folder.root)) ?? ["?"] }

  /// The memory that is resident, in bytes.
  var residentBytes: Int {
    let pages = (try? String(contentsOfFile: "/proc/\(run.process)/statm", encoding: .utf8))?.split(
      separator: " ")
    return (pages?.dropFirst().first.flatMap { Int($0) } ?? .max / Int(getpagesize())) * Int(getpagesize())
  }

  /// The most memory that was ever resident, in bytes.
  var peakBytes: Int {
    let status = (try? String(contentsOfFile: "/proc/\(run.process)/status", encoding: .utf8)) ?? ""
    let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
    return (line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) } ?? .max >> 10)
      << 10
  }

  struct Statistics: Decodable {
    let items: Int
    let longest: UInt64
    let longestComputing: UInt64
  }

  /// How long items have held the main queue.
  func statistics() throws -> Statistics {
    try JSONDecoder().decode(Statistics.self, from: Data(try request("GET", "/statistics", port: port).body))
  }

  /// Begins a batch of uploads or downloads.
  func begin(_ path: String, _ body: [String: [String]], page: String? = nil) throws -> [Int] {
    let lists = body.map { "\"\($0.key)\": [\($0.value.map { "\"\($0)\"" }.joined(separator: ","))]" }
    let members = lists + (page.map { ["\"page\": \"\($0)\""] } ?? [])
    let answer = try request("POST", path, port: port, Array("{\(members.joined(separator: ","))}".utf8))
    try #require(answer.status == 201, "\(answer.text)")
    return try JSONDecoder().decode([Int].self, from: Data(answer.body))
  }
}

/// A page that collects its events.
final class ListeningPage: Sendable {
  struct Event: Sendable {
    let name: String
    let data: String
    /// The number of the last notice, which the page returns when it reconnects.
    let id: String
  }

  struct Notice: Decodable {
    struct Failure: Decodable {
      let name: String
      let reason: String
    }
    let arrived: Int
    let failures: [Failure]
  }

  let name: String
  private let client: Client
  private let events = Collected<Event>()
  private let news = DispatchSemaphore(value: 0)

  /// - Parameter last: the id of the last event, if the page reconnects.
  init(_ app: RunningApp, name: String, last: String? = nil) throws {
    self.name = name
    client = try Client(port: app.port)
    client.send(
      Client.head(
        "GET", "/events?page=\(name)", port: app.port, last.map { "Last-Event-ID: \($0)\r\n" } ?? ""))
    let (client, events, news) = (client, events, news)
    DispatchQueue.global().async {
      var text = ""
      while case let bytes = client.receive(), !bytes.isEmpty {
        text += String(decoding: bytes, as: UTF8.self)
        while let end = text.firstRange(of: "\n\n") {
          let lines = text[..<end.lowerBound].split(separator: "\n")
          text = String(text[end.upperBound...])
          guard let name = lines.first(where: { $0.hasPrefix("event: ") }),
            let data = lines.first(where: { $0.hasPrefix("data: ") }),
            let id = lines.first(where: { $0.hasPrefix("id: ") })
          else { continue }
          events.append(
            Event(
              name: String(name.dropFirst(7)), data: String(data.dropFirst(6)), id: String(id.dropFirst(4))))
          news.signal()
        }
      }
    }
    try #require(first("photos") != nil)
  }

  /// Closes the page by ending its connection.
  func leave() { shutdown(client.descriptor, Int32(SHUT_RDWR)) }

  var all: [Event] { events.all }

  /// Waits for the first event of that name whose data contains the text.
  func first(_ name: String, _ text: String = "") -> Event? {
    while true {
      if let event = all.first(where: { $0.name == name && (text.isEmpty || $0.data.contains(text)) }) {
        return event
      }
      guard news.comes() else { return nil }
    }
  }

  func notice() throws -> Notice {
    let event = try #require(first("notice"), "there was no notice")
    return try JSONDecoder().decode(Notice.self, from: Data(event.data.utf8))
  }
}
