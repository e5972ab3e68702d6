import ExampleSupport
import Glibc
import Testing

@testable import echo_server

/// The server in this process: what it echoes, and that it releases everything.
@Suite(.timeLimit(.minutes(10))) struct ServerTests {
  @Test(arguments: [1, 2, 1000, 65_535, 65_536, 65_537, 200_000]) func whatIsSentComesBack(size: Int)
    async throws
  {
    let running = try RunningServer()
    let client = try running.client()
    for seed in 0..<3 { try client.expectEcho(of: message(size, seed: seed)) }
    await running.stop()
    #expect(running.server.statistics.bytes == 3 * size)
  }

  @Test func outputIsFinishedAfterTheClientHasEndedItsOwn() async throws {
    let running = try RunningServer()
    let client = try running.client()
    try client.send(message(50_000))
    client.endOutput()
    #expect(try client.receive(60_000) == message(50_000))
    try await running.wait("the server closes too") { $0.open == 0 }
    await running.stop()
  }

  @Test func aClientThatDoesNotReadIsNotReadEither() async throws {
    let running = try RunningServer()
    let slow = try running.client(receiveBuffer: 4096)
    let bytes = message(64 << 20)
    var sent = 0
    // Until the kernel takes no more, and the server has paused.
    try await running.wait("the server pauses") { statistics in
      if sent < bytes.count { sent += slow.sendWhatFits(bytes[sent...]) }
      return statistics.pauses > 0
    }
    #expect(sent < bytes.count)
    // Other clients are served meanwhile.
    try running.client().expectEcho(of: message(1000))
    let received = try slow.receive(sent)
    #expect(received == Array(bytes[..<sent]))
    // The input flows again.
    try slow.expectEcho(of: message(1000, seed: 1))
    await running.stop()
  }

  @Test func manyAtTheSameTime() async throws {
    let count = connectionCount(unlessTold: 200)
    #expect(DescriptorLimit.makeRoom(for: 2 * count + 100) == 2 * count + 100, "too few descriptors")
    let running = try RunningServer { $0.maximumConnections = count }
    var clients: [EchoClient] = []
    for index in 0..<count {
      clients.append(try running.client())
      if index % 100 == 0 { try clients[index].expectEcho(of: message(10)) }
    }
    for (seed, client) in clients.enumerated() { try client.send(message(500, seed: seed)) }
    for (seed, client) in clients.enumerated() {
      #expect(try client.receive(500) == message(500, seed: seed))
    }
    #expect(running.server.statistics.open == count)
    clients = []
    try await running.wait("all are closed") { $0.open == 0 }
    await running.stop()
    #expect(running.server.statistics.failed == 0)
  }

  @Test func furtherClientsWaitWhileAllPlacesAreTaken() async throws {
    let running = try RunningServer { $0.maximumConnections = 2 }
    var first: EchoClient? = try running.client()
    let second = try running.client()
    try first?.expectEcho(of: message(10))
    try second.expectEcho(of: message(10))
    let third = try running.client()
    try third.send(message(10, seed: 3))
    try second.expectEcho(of: message(10))
    #expect(running.server.statistics.accepted == 2)
    first = nil
    #expect(try third.receive(10) == message(10, seed: 3))
    #expect(running.server.statistics.accepted == 3)
    withExtendedLifetime(second) {}
    await running.stop()
  }

  @Test func aResetIsTheEndOfThatConnectionOnly() async throws {
    let running = try RunningServer()
    let other = try running.client()
    for _ in 0..<50 {
      let client = try running.client()
      try client.expectEcho(of: message(10))
      client.resetsWhenClosed()
    }
    try await running.wait("they are closed") { $0.open == 1 }
    #expect(running.server.statistics.failed == 50)
    try other.expectEcho(of: message(10))
    await running.stop()
  }

  @Test func anAddressInUseIsReported() throws {
    let running = try RunningServer()
    let taken = running.server.port
    let error = #expect(throws: ServerError.self) { try RunningServer { $0.port = taken } }
    #expect(error?.message == "cannot listen on 127.0.0.1, port \(taken): Address already in use")
    running.server.stop(grace: 0) {}
  }

  @Test func namesAndOtherAddresses() async throws {
    let named = try RunningServer { $0.host = "localhost" }
    #expect(named.server.address.hasSuffix(":\(named.server.port)"))
    await named.stop()
    let error = #expect(throws: ServerError.self) { try RunningServer { $0.host = "192.0.2.1" } }
    #expect(error?.message.hasSuffix("Cannot assign requested address") == true)
  }
}
