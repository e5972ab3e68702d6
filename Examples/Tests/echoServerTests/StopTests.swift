import ExampleSupport
import Glibc
import Testing

@testable import echo_server

/// The ways in which a server ends.
@Suite(.timeLimit(.minutes(10))) struct StopTests {
  @Test func whatWasReceivedIsEchoedFirst() async throws {
    let running = try RunningServer()
    let client = try running.client()
    try client.expectEcho(of: message(10))
    // All of it is on the server's side when `send` returns, whether the server has looked at it or not.
    try client.send(message(100_000))
    running.server.stop(grace: 20) {}
    #expect(try client.receive(200_000) == message(100_000))
    try await running.wait("the connection is closed") { $0.open == 0 }
    #expect(running.server.statistics.cutOff == 0)
  }

  @Test func pendingOutputOfAPausedConnectionLeavesFirst() async throws {
    let running = try RunningServer()
    let client = try running.client(receiveBuffer: 4096)
    let bytes = message(64 << 20)
    var sent = 0
    try await running.wait("the server pauses") { statistics in
      if sent < bytes.count { sent += client.sendWhatFits(bytes[sent...]) }
      return statistics.pauses > 0
    }
    running.server.stop(grace: 20) {}
    // Bytes that had not left the client when the server found nothing more are thrown away, and reset nothing.
    let received = try client.receive(sent + 1)
    #expect(!received.isEmpty && received == Array(bytes[..<received.count]))
    try await running.wait("the connection is closed") { $0.open == 0 }
    #expect(running.server.statistics.cutOff == 0)
    #expect(running.server.statistics.bytes == received.count)
  }

  /// As if the server had found nothing more while a client sends: what comes after the end resets nothing.
  @Test func aClientThatGoesOnSendingSeesTheEnd() async throws {
    let running = try RunningServer { $0.silence = 60 }
    let client = try running.client()
    try client.expectEcho(of: message(10))
    running.server.stop(grace: 20) {}
    #expect(try client.receive(1) == [])
    for _ in 0..<3 {
      try client.send(message(100_000))
      #expect(try client.receive(1) == [])
    }
    client.endOutput()
    try await running.wait("the connection is closed") { $0.open == 0 }
    #expect(running.server.statistics.bytes == 10)
    #expect(running.server.statistics.failed == 0)
  }

  @Test func idleClientsSeeTheEnd() async throws {
    let running = try RunningServer()
    let clients = try (0..<20).map { _ in try running.client() }
    for client in clients { try client.expectEcho(of: message(10)) }
    await running.stop()
    for client in clients { #expect(try client.receive(1) == []) }
    #expect(throws: EchoClient.Refused.self) { try running.client() }
  }

  @Test func aClientThatDoesNotReadIsCutOffAfterTheGrace() async throws {
    let running = try RunningServer()
    let client = try running.client(receiveBuffer: 4096)
    let bytes = message(64 << 20)
    var sent = 0
    try await running.wait("the server pauses") { statistics in
      if sent < bytes.count { sent += client.sendWhatFits(bytes[sent...]) }
      return statistics.pauses > 0
    }
    await running.stop(grace: 0)
    let statistics = running.server.statistics
    #expect(statistics.cutOff == 1)
    #expect(statistics.open == 0)
    withExtendedLifetime(client) {}
  }

  @Test func aServerWithoutClients() async throws {
    let running = try RunningServer()
    await running.stop()
    #expect(running.server.statistics.accepted == 0)
    #expect(running.reports.all == [])
  }

  /// Servers stop while clients send.
  @Test func manyTimes() async throws {
    for _ in 0..<50 {
      let running = try RunningServer()
      let clients = try (0..<5).map { _ in try running.client() }
      // So all are accepted: the server closes those that still wait when it stops.
      for client in clients { try client.expectEcho(of: message(10)) }
      for (seed, client) in clients.enumerated() { try client.send(message(3_000, seed: seed)) }
      running.server.stop(grace: 20) {}
      for (seed, client) in clients.enumerated() {
        #expect(try client.receive(4_000) == message(3_000, seed: seed))
        client.endOutput()
      }
      try await running.wait("all are closed") { $0.open == 0 }
    }
  }
}
