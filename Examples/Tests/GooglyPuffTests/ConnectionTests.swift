import Concourse
import Glibc
import Testing

@testable import GooglyPuffKit

@Suite struct ConnectionTests {
  /// The request can be read, but nothing can be sent: the connection ends, and must not become a stream after that. Its
  /// descriptor is about to be closed, and events would reach the client that gets the same number.
  @Test func aClientThatIsGoneGetsNoStream() throws {
    var ends: [Int32] = [0, 0]
    try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
    Socket.prepare(ends[0])
    let request = Client.head("GET", "/events", port: 1)
    try #require(Glibc.send(ends[1], request, request.count, Int32(MSG_NOSIGNAL)) == request.count)
    close(ends[1])
    let begun = Collected<Bool>()
    let closed = DispatchSemaphore(value: 0)
    let connection = Connection(
      ends[0], turnstile: Turnstile(places: 1),
      plan: { _ in
        .stream { _ in
          begun.append(true)
          return {}
        }
      }, whenClosed: { _ in closed.signal() })
    connection.start()
    #expect(closed.comes())
    #expect(begun.all.isEmpty)
  }
}
