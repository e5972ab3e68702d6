import ExampleSupport
import Glibc
import Testing

@testable import GooglyPuffKit

@Suite struct ConnectionTests {
  private let ends: (server: Int32, client: Int32)
  private let closed = DispatchSemaphore(value: 0)

  init() throws {
    var ends: [Int32] = [0, 0]
    try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
    Socket.prepare(ends[0])
    self.ends = (ends[0], ends[1])
  }

  private func start(
    patience: Patience = Patience(), _ plan: @escaping @Sendable (RequestHead) -> Plan
  ) {
    let closed = closed
    Connection(
      ends.server, turnstile: Turnstile(places: 1), patience: patience, plan: plan,
      whenClosed: { _ in closed.signal() }
    ).start()
  }

  private func send(_ bytes: [UInt8]) -> Bool {
    Glibc.send(ends.client, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count
  }

  /// Receives until the text has come. False if the connection ends first.
  private func receive(_ text: String) -> Bool {
    var (received, buffer) = ("", [UInt8](repeating: 0, count: 4_096))
    while !received.contains(text) {
      let count = recv(ends.client, &buffer, buffer.count, 0)
      guard count > 0 else { return false }
      received += String(decoding: buffer[..<count], as: UTF8.self)
    }
    return true
  }

  /// The request can be read, but nothing can be sent: the connection ends, and must not become a stream after that.
  /// Its descriptor is about to be closed, and events would reach the client that gets the same number.
  @Test func aClientThatIsGoneGetsNoStream() throws {
    try #require(send(Client.head("GET", "/events", port: 1)))
    close(ends.client)
    let begun = Collected<Bool>()
    start { _ in
      .stream { _ in
        begun.append(true)
        return {}
      }
    }
    #expect(closed.comes())
    #expect(begun.all.isEmpty)
  }

  /// Pages that stay open would otherwise take all connections.
  @Test func theOldestStreamEndsWhenThereAreTooMany() throws {
    let events = EventStreams()
    let plan: @Sendable (RequestHead) -> Plan = { _ in
      .stream { stream in
        events.add(stream, lastNotice: nil) { [] }
        return { events.remove(stream) }
      }
    }
    let later = try (0..<Limits.streams).map { _ in try ConnectionTests() }
    for test in [self] + later {
      try #require(test.send(Client.head("GET", "/events", port: 1)))
      test.start(plan)
      // The stream has been added.
      try #require(test.receive("event: photos"))
    }
    #expect(closed.comes())
    events.send("prompt", true)
    for test in later {
      #expect(test.receive("event: prompt"))
      close(test.ends.client)
      #expect(test.closed.comes())
    }
    close(ends.client)
  }

  /// Requests that were read and not answered would fill the memory.
  @Test func requestsAreNotReadAhead() throws {
    let planned = Collected<Bool>()
    start { _ in
      planned.append(true)
      return .answer(Response())
    }
    let client = ends.client
    let drained = DispatchSemaphore(value: 0)
    DispatchQueue.global().async {
      var buffer = [UInt8](repeating: 0, count: 64 << 10)
      while recv(client, &buffer, buffer.count, 0) > 0 {}
      drained.signal()
    }
    let one = Client.head("GET", "/x", port: 1)
    let thousand = [UInt8]((0..<1_000).flatMap { _ in one })
    var sent = 0
    while case let count = planned.all.count, count < 10_000 {
      // The kernel's buffer has room for fewer than 10,000.
      try #require(sent - count < 20_000, "\(sent) were taken, \(count) answered")
      try #require(send(thousand))
      sent += 1_000
    }
    shutdown(client, Int32(SHUT_RDWR))
    #expect(drained.comes() && closed.comes())
    close(client)
  }

  @Test func aClientThatSendsAByteNowAndThenLosesItsPlace() throws {
    let broken = DispatchSemaphore(value: 0)
    start(patience: Patience(limit: .seconds(2))) { _ in
      .receive(
        Plan.Receiver(
          limit: .max, takesTurn: true, received: { _, _, _ in }, broken: { _ in broken.signal() }))
    }
    try #require(send(Client.head("POST", "/photos/1", port: 1, length: 1 << 20)))
    // A byte each 10 ms until the server closes the connection.
    let deadline = DispatchTime.now() + .seconds(120)
    while send([0]), .now() < deadline { usleep(10_000) }
    #expect(.now() < deadline, "the server still takes bytes")
    #expect(broken.comes() && closed.comes())
    close(ends.client)
  }

  @Test func aClientThatIsFastEnoughKeepsItsPlace() {
    func seconds(_ count: Int) -> DispatchTime {
      DispatchTime(uptimeNanoseconds: UInt64(count) * 1_000_000_000)
    }
    /// How long a client lasts that moves so many bytes each second.
    func end(moving count: Int) -> Int {
      var patience = Patience()
      patience.renew(at: seconds(1))
      for second in 2..<1_000 {
        guard seconds(second) <= patience.deadline else { return second }
        patience.earn(count, at: seconds(second))
      }
      return .max
    }
    #expect(end(moving: 0) == 32)
    #expect(end(moving: 1) == 32)
    #expect(end(moving: Limits.slowest / 2) == 61)
    #expect(end(moving: Limits.slowest) == .max)
    // What was moved early is no credit for later.
    var patience = Patience()
    patience.renew(at: seconds(1))
    patience.earn(1 << 30, at: seconds(2))
    #expect(patience.deadline == seconds(32))
  }
}
