import Glibc
import Testing

/// The program as its users see it: what it prints, what signals do, how it ends.
@Suite(.timeLimit(.minutes(2))) struct EchoProgramTests {
  @Test(arguments: [SIGTERM, SIGINT]) func aSignalStopsItInGoodOrder(signal: Int32) throws {
    let server = try ServerProcess(["--port", "0"])
    let client = try EchoClient(port: server.port())
    try client.expectEcho(of: message(5_000))
    server.send(signal)
    #expect(server.errorLine() == "echo-server: stopping, 1 connections to close")
    #expect(try client.receive(1) == [])
    #expect(
      server.errorLine()
        == "echo-server: 0 open, 1 accepted, 0 broken, 0 cut off, 5000 bytes echoed, 0 pauses")
    #expect(server.status() == 0)
  }

  @Test func aStatisticsLineForEachSIGUSR1() throws {
    let server = try ServerProcess(["--port=0"])
    let client = try EchoClient(port: server.port())
    for round in 1...3 {
      try client.expectEcho(of: message(100))
      // The server counts what it has sent, so the client may have it a little earlier.
      var line: String
      repeat {
        server.send(SIGUSR1)
        line = server.errorLine()
      } while line.contains(" \(100 * round - 100) bytes echoed")
      #expect(
        line
          == "echo-server: 1 open, 1 accepted, 0 broken, 0 cut off, \(100 * round) bytes echoed, 0 pauses")
    }
    server.send(SIGTERM)
    #expect(server.status() == 0)
  }

  @Test func theSecondSignalCutsClientsOff() throws {
    let server = try ServerProcess(["--port=0", "--grace=3600"])
    let client = try EchoClient(port: server.port(), receiveBuffer: 4096)
    // More than all buffers on the way hold: the server is left with pending output.
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
    #expect(server.status() == 1)
  }

  @Test func quietMeansQuiet() throws {
    // The kernel chooses the port for somebody else first, as nobody tells us otherwise.
    let probe = try ServerProcess(["--port=0"])
    let port = try probe.port()
    probe.send(SIGTERM)
    #expect(probe.status() == 0)
    let server = try ServerProcess(["--quiet", "--port=\(port)"])
    // Its signals are caught before it says anything, but it says nothing: an answer is the sign.
    var client: EchoClient?
    while client == nil { client = try? EchoClient(port: port) }
    try client?.expectEcho(of: message(10))
    server.send(SIGTERM)
    #expect(server.outputLine() == "")
    #expect(server.errorLine() == "")
    #expect(server.status() == 0)
  }

  @Test func aPortThatIsTaken() throws {
    let first = try ServerProcess(["--port=0"])
    let port = try first.port()
    let second = try ServerProcess(["--port=\(port)"])
    #expect(
      second.errorLine() == "echo-server: cannot listen on 127.0.0.1, port \(port): Address already in use")
    #expect(second.status() == 1)
    first.send(SIGTERM)
    #expect(first.status() == 0)
  }

  @Test func theHardLimitOfDescriptorsIsNamed() throws {
    let server = try ServerProcess(["--port=0", "--max-connections=100"], prelude: "ulimit -n 40")
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
    server.send(SIGTERM)
    #expect(server.status() == 0)
  }

  @Test func theSoftLimitIsRaised() throws {
    let server = try ServerProcess(["--port=0", "--max-connections=100"], prelude: "ulimit -Sn 40")
    let port = try server.port()
    let clients = try (0..<60).map { _ in try EchoClient(port: port) }
    for client in clients { try client.expectEcho(of: message(10)) }
    server.send(SIGTERM)
    #expect(server.errorLine() == "echo-server: stopping, 60 connections to close")
    #expect(server.status() == 0)
  }

  /// As under nohup: of the two signals sent, only the one that was not ignored may do anything.
  @Test func aSignalThatWasIgnoredStaysIgnored() throws {
    let server = try ServerProcess(["--port=0"], prelude: "trap '' INT")
    _ = try server.port()
    server.send(SIGINT)
    server.send(SIGUSR1)
    #expect(server.errorLine().hasPrefix("echo-server: 0 open"))
    server.send(SIGTERM)
    #expect(server.errorLine() == "echo-server: stopping, 0 connections to close")
    #expect(server.status() == 0)
  }

  @Test func helpVersionAndMistakes() throws {
    let help = try ServerProcess(["--help"])
    #expect(help.outputLine() == "usage: echo-server [options]")
    #expect(help.status() == 0)
    #expect(try ServerProcess(["--version"]).status() == 0)
    let wrong = try ServerProcess(["--wrong"])
    #expect(wrong.errorLine() == "echo-server: no such option: --wrong")
    #expect(wrong.errorLine() == "Try 'echo-server --help'.")
    #expect(wrong.status() == 2)
  }
}
