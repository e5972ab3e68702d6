import Synchronization
import Testing

@testable import ConcourseCluster

/// What the servers say of an item in a line.
@Suite(.timeLimit(.minutes(10))) struct LineTests {
  /// An item that was cancelled does not start, although its worker was not told and the mark is forgotten.
  @Test func itemThatIsGoneDoesNotStart() async throws {
    let engine = try await NATSEngine.connect(
      servers: TestServers.shared.value.addresses, credentials: .none, replicas: 3, timeout: .seconds(300))
    let settings = QueueSettings(
      label: EngineKind.servers.label(), attributes: [.concurrent, .barriers], options: ClusterQueueOptions())
    let queue = try #require(try await engine.open(settings) as? NATSQueue)
    for order in [ItemOrder.key("a"), .barrier, .none] {
      let part = NATSNames.part(of: order)
      func delivery(at place: UInt64, id: String) throws -> NATSDelivery {
        try #require(
          NATSDelivery(
            NATSMessage(
              subject: "\(queue.names.subject).\(part).id-\(id).-",
              reply: "$JS.ACK.\(queue.names.stream).workers.1.\(place).\(place).7.0", bytes: [],
              id: "id-\(id)", token: id), of: queue))
      }
      func turn(of delivery: NATSDelivery) async throws -> NATSTurn? {
        try await queue.turn(of: delivery, part, before: queue.firstBarrier(), hasWaited: true)
      }
      func place(_ id: String) async throws -> UInt64 {
        let submission = try await queue.store(NewItem(bytes: [], id: id, order: order))
        #expect(submission == .stored)
        let info: NATSStreamInfo = try await queue.ask("STREAM.INFO.\(queue.names.stream)", NATSNothing())
        return info.state.last_seq
      }
      let (one, other) = (try await place("\(part)-1"), try await place("\(part)-2"))
      let (first, second) = (
        try delivery(at: one, id: "\(part)-1"), try delivery(at: other, id: "\(part)-2")
      )
      #expect(try await turn(of: first) == .first)
      #expect(try await turn(of: second) == (order == .none ? .first : nil))
      // What the leader has not applied yet.
      #expect(try await turn(of: delivery(at: other + 1, id: "later")) != .gone)
      #expect(try await !queue.isGone(delivery(at: other + 1, id: "later")))
      try await queue.remove(at: one)
      #expect(try await turn(of: first) == .gone)
      #expect(try await turn(of: second) == .first)
      try await queue.remove(at: other)
      #expect(try await turn(of: second) == .gone)
    }
    await engine.close()
  }
}
