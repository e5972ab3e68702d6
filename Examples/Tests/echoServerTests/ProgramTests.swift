import ExampleSupport
import Glibc
import TestSupport
import Testing

@testable import echo_server

/// The program as its users see it: what it prints, what signals do, how it ends.
@Suite(.timeLimit(.minutes(10))) struct EchoProgramTests {
  @Test(arguments: [SIGTERM, SIGINT]) func aSignalStopsItInGoodOrder(signal: Int32) throws {
    let server = ProgramRun("echo-server", "--port", "0")
    let client = try EchoClient(port: server.port())
    try client.expectEcho(of: message(5_000))
    server.send(signal)
    #expect(server.errorLine() == "echo-server: stopping, 1 connections to close")
    #expect(try client.receive(1) == [])
    #expect(
      server.errorLine()
        == "echo-server: 0 open, 1 accepted, 0 broken, 0 cut off, 5000 bytes echoed, 0 pauses")
    #expect(server.end() == 0)
  }

  @Test func aStatisticsLineForEachSIGUSR1() throws {
    let server = ProgramRun("echo-server", "--port=0")
    let client = try EchoClient(port: server.port())
    for round in 1...3 {
      try client.expectEcho(of: message(100))
      // The server counts a byte after sending it, so the client may have it earlier.
      var line: String
      repeat {
        server.send(SIGUSR1)
        line = server.errorLine()
      } while line.contains(" \(100 * round - 100) bytes echoed")
      #expect(
        line
          == "echo-server: 1 open, 1 accepted, 0 broken, 0 cut off, \(100 * round) bytes echoed, 0 pauses")
    }
    withExtendedLifetime(client) {}
    server.send(SIGTERM)
    #expect(server.end() == 0)
  }

  @Test func theSecondSignalCutsClientsOff() throws {
    let server = ProgramRun("echo-server", "--port=0", "--grace=3600")
    let client = try EchoClient(port: server.port(), receiveBuffer: 4096)
    // More than all buffers on the way hold, so output is pending in the server.
    let bytes = message(64 << 20)
    var sent = 0
    var pauses = false
    while !pauses {
      if sent < bytes.count { sent += client.sendWhatFits(bytes[sent...]) }
      server.send(SIGUSR1)
      pauses = server.errorLine().hasSuffix(" 1 pauses")
    }
    server.send(SIGTERM)
    #expect(server.errorLine() == "echo-server: stopping, 1 connections to close")
    server.send(SIGINT)
    #expect(server.errorLine().hasPrefix("echo-server: 0 open, 1 accepted, 0 broken, 1 cut off, "))
    withExtendedLifetime(client) {}
    #expect(server.end() == 1)
  }

  @Test func everyOptionIsUnderstood() throws {
    var expected = Options()
    (expected.host, expected.port, expected.maximumConnections) = ("::1", 80, 7)
    (expected.grace, expected.quiet) = (0, true)
    let words = ["--host", "::1", "--port=80", "--max-connections", "7", "--grace=0", "-q"]
    var arguments = Arguments(words.map { Bytes($0.utf8) })
    #expect(try Options(&arguments) == expected)
    var name = Arguments([Bytes("7007".utf8)])
    #expect(throws: UsageError("no names are expected: 7007")) { try Options(&name) }
  }

  @Test func quietMeansQuiet() throws {
    // A first server asks the kernel for a free port: a quiet one does not print its port.
    let probe = ProgramRun("echo-server", "--port=0")
    let port = try probe.port()
    probe.send(SIGTERM)
    #expect(probe.end() == 0)
    let server = ProgramRun("echo-server", "--quiet", "--port=\(port)")
    // It prints nothing, so its first answer shows that it catches signals.
    var client: EchoClient?
    while client == nil { client = try? EchoClient(port: port) }
    try client?.expectEcho(of: message(10))
    server.send(SIGTERM)
    #expect(server.outputLine() == "")
    #expect(server.errorLine() == "")
    #expect(server.end() == 0)
  }

  @Test func aPortThatIsTaken() throws {
    let first = ProgramRun("echo-server", "--port=0")
    let port = try first.port()
    let second = ProgramRun("echo-server", "--port=\(port)")
    #expect(
      second.errorLine() == "echo-server: cannot listen on 127.0.0.1, port \(port): Address already in use")
    #expect(second.end() == 1)
    first.send(SIGTERM)
    #expect(first.end() == 0)
  }

  @Test func theHardLimitOfDescriptorsIsNamed() throws {
    let server = ProgramRun("echo-server", "--port=0", "--max-connections=100", prelude: "ulimit -n 40")
    #expect(
      server.errorLine()
        == "echo-server: the hard limit of open descriptors (ulimit -Hn) leaves room for 8 connections, "
        + "not 100; further clients have to wait")
    let port = try server.port()
    var clients = try (0..<8).map { _ in try EchoClient(port: port) }
    for client in clients { try client.expectEcho(of: message(10)) }
    let waiting = try EchoClient(port: port)
    try waiting.send(message(10))
    clients.removeLast()
    #expect(try waiting.receive(10) == message(10))
    withExtendedLifetime(clients) {}
    server.send(SIGTERM)
    #expect(server.end() == 0)
  }

  @Test func theSoftLimitIsRaised() throws {
    let server = ProgramRun("echo-server", "--port=0", "--max-connections=100", prelude: "ulimit -Sn 40")
    let port = try server.port()
    let clients = try (0..<60).map { _ in try EchoClient(port: port) }
    for client in clients { try client.expectEcho(of: message(10)) }
    server.send(SIGTERM)
    #expect(server.errorLine() == "echo-server: stopping, 60 connections to close")
    withExtendedLifetime(clients) {}
    #expect(server.end() == 0)
  }

  /// As under nohup: of the two signals sent, only the one that was not ignored has an effect.
  @Test func aSignalThatWasIgnoredStaysIgnored() throws {
    let server = ProgramRun("echo-server", "--port=0", prelude: "trap '' INT")
    _ = try server.port()
    server.send(SIGINT)
    server.send(SIGUSR1)
    #expect(server.errorLine().hasPrefix("echo-server: 0 open"))
    server.send(SIGTERM)
    #expect(server.errorLine() == "echo-server: stopping, 0 connections to close")
    #expect(server.end() == 0)
  }

  @Test func helpAndMistakes() throws {
    let help = ProgramRun("echo-server", "--help")
    #expect(help.outputLine() == "usage: echo-server [options]")
    #expect(help.end() == 0)
    let wrong = ProgramRun("echo-server", "--wrong")
    #expect(wrong.errorLine() == "echo-server: no such option: --wrong")
    #expect(wrong.errorLine() == "Try 'echo-server --help'.")
    #expect(wrong.end() == 2)
  }
}

extension ProgramRun {
  /// The port that the server says it listens on, once it does.
  fileprivate func port() throws -> UInt16 {
    let line = outputLine()
    try #require(line.hasPrefix("echo-server: listening on 127.0.0.1:"), "\(line)")
    return try #require(UInt16(line.split(separator: ":").last ?? ""))
  }
}
