import EchoKit
import Glibc
import Synchronization
import Testing

/// A server in this process, for one test.
final class RunningServer: Sendable {
  let server: Server
  let reports = Reports()

  init(_ configure: (inout Options) -> Void = { _ in }) throws {
    var options = Options()
    options.port = 0
    options.maximumConnections = 1_000
    configure(&options)
    let reports = reports
    server = try Server(options) { reports.add($0) }
    server.start()
  }

  func client(receiveBuffer: Int32? = nil) throws -> EchoClient {
    try EchoClient(port: server.port, receiveBuffer: receiveBuffer)
  }

  /// Returns once everything is closed.
  func stop(grace: Int = 20) async {
    await withCheckedContinuation { continuation in
      server.stop(grace: grace) { continuation.resume() }
    }
  }

  /// Looks again and again until the statistics are as wanted; what the server does with a client's news
  /// cannot be seen from the client's side. A server that never gets there fails the test.
  func wait(_ what: Comment, until holds: (Statistics) -> Bool) async throws {
    let start = ContinuousClock.now
    while !holds(server.statistics) {
      try #require(ContinuousClock.now - start < .seconds(30), what)
      await Task.yield()
      usleep(200)
    }
  }
}

/// What the server reported.
final class Reports: Sendable {
  private let messages = Mutex<[String]>([])

  func add(_ message: String) { messages.withLock { $0.append(message) } }
  var all: [String] { messages.withLock { $0 } }
}

/// How many connections to use where the number matters: ECHO_TEST_CONNECTIONS, or some.
func connectionCount(unlessTold few: Int) -> Int {
  guard let text = getenv("ECHO_TEST_CONNECTIONS"), let count = Int(String(cString: text)) else { return few }
  return count
}
