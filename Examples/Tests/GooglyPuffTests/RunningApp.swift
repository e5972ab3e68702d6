import Concourse
import FoundationEssentials
import Glibc
import Testing

@testable import GooglyPuffKit

/// A process of the built program.
final class RunningApp: @unchecked Sendable {  // SAFETY: `process` and `port` do not change after `init`.
  let port: UInt16
  private let process: pid_t

  /// The program, which the package manager builds beside the test executable.
  static let program: String = {
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
    let length = readlink("/proc/self/exe", &buffer, buffer.count)
    let me = String(decoding: buffer.prefix(max(0, length)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    return me.split(separator: "/").dropLast().reduce("") { $0 + "/" + $1 } + "/googlypuff"
  }()

  init() throws {
    var ends: [Int32] = [0, 0]
    try #require(pipe(&ends) == 0)
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO)
    // The program must not keep connections of other tests open.
    for descriptor: Int32 in 3..<4_096 { posix_spawn_file_actions_addclose(&actions, descriptor) }
    let arguments: [String] = [RunningApp.program, "--port", "0"]
    // SAFETY: copies of the words, freed at the end of this initializer.
    let words: [UnsafeMutablePointer<CChar>?] =
      arguments.map { strdup($0) } + [nil]
    defer { for word in words { free(word) } }
    var process = pid_t()
    try #require(posix_spawn(&process, RunningApp.program, &actions, nil, words, environ) == 0)
    close(ends[1])
    defer { close(ends[0]) }
    var line: [UInt8] = []
    var byte: UInt8 = 0
    while read(ends[0], &byte, 1) == 1, byte != UInt8(ascii: "\n") { line.append(byte) }
    let port = String(decoding: line, as: UTF8.self).split(separator: ":").last.flatMap {
      UInt16($0.dropLast())
    }
    self.process = process
    self.port = try #require(port, "no address was printed")
  }

  deinit {
    kill(process, SIGTERM)
    var status: Int32 = 0
    waitpid(process, &status, 0)
  }

  struct Statistics: Decodable {
    struct Record: Decodable {
      let items: Int
      let longest: UInt64
      let longestComputing: UInt64
      let late: Int
    }
    let mainQueue: Record
    let photos: Int
    let residentBytes: Int
  }

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

  init(_ app: RunningApp, name: String) throws {
    self.name = name
    client = try Client(port: app.port)
    client.send(Client.head("GET", "/events?page=\(name)", port: app.port))
    let (client, events, news) = (client, events, news)
    DispatchQueue.global().async {
      var text = ""
      while case let bytes = client.receive(), !bytes.isEmpty {
        text += String(decoding: bytes, as: UTF8.self)
        while let end = text.firstRange(of: "\n\n") {
          let lines = text[..<end.lowerBound].split(separator: "\n")
          text = String(text[end.upperBound...])
          guard let name = lines.first(where: { $0.hasPrefix("event: ") }),
            let data = lines.first(where: { $0.hasPrefix("data: ") })
          else { continue }
          events.append(Event(name: String(name.dropFirst(7)), data: String(data.dropFirst(6))))
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
