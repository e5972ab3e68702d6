import Concourse
import ConcourseCluster
import Glibc
import Synchronization
import Testing

/// A network that passes nothing on for a while.
@Suite(.timeLimit(.minutes(10))) struct CutTests {
  /// A port of loopback from which bytes are passed on to a server and back, unless the path is cut.
  private final class Path: Sendable {
    private struct State {
      var isCut = false
      var hasEnded = false
      var connections = 0
      /// How many requests for items are to be lost.
      var losses = 0
    }

    let address: String
    private let listener: Int32
    private let server: UInt16
    private let state = Mutex(State())

    init(to address: String) throws {
      server = UInt16(address.split(separator: ":").last!)!
      let (listener, port) = try TestServers.listener()
      self.listener = listener
      self.address = "nats://127.0.0.1:\(port)"
      DispatchQueue(label: "path").async { self.pass() }
    }

    /// How often a client has connected.
    var connections: Int { state.withLock { $0.connections } }
    func cut(_ isCut: Bool) { state.withLock { $0.isCut = isCut } }
    func lose(_ count: Int) { state.withLock { $0.losses = count } }
    var losses: Int { state.withLock { $0.losses } }
    func end() { state.withLock { $0.hasEnded = true } }

    private func pass() {
      // What one socket has to read is written to the other.
      var others: [Int32: Int32] = [:]
      var buffer = [UInt8](repeating: 0, count: 65_536)
      while true {
        let now = state.withLock { $0 }
        if now.hasEnded { break }
        var sockets = [pollfd(fd: listener, events: Int16(POLLIN), revents: 0)]
        if !now.isCut { sockets += others.keys.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) } }
        // It ends also without an event, to look whether the path is to be cut.
        poll(&sockets, nfds_t(sockets.count), 20)
        for socket in sockets where socket.revents != 0 {
          if socket.fd == listener {
            let client = accept(listener, nil, nil)
            let server = TestServers.connection(to: server)
            (others[client], others[server]) = (server, client)
            state.withLock { $0.connections += 1 }
            continue
          }
          guard let other = others[socket.fd] else { continue }
          let count = recv(socket.fd, &buffer, buffer.count, 0)
          if count > 0 { lose(in: &buffer, count) }
          if count > 0, send(other, buffer, count, Int32(MSG_NOSIGNAL)) == count { continue }
          for end in [socket.fd, other] {
            close(end)
            others[end] = nil
          }
        }
      }
      for end in others.keys { close(end) }
      close(listener)
    }

    /// Gives requests for items a subject on which no server listens. Like one to a consumer without a leader, they get no
    /// answer.
    private func lose(in buffer: inout [UInt8], _ count: Int) {
      let (subject, other) = (Array("PUB $JS.API.CONSUMER.MSG.NEXT.".utf8), Array("LOST".utf8))
      guard losses > 0, count >= subject.count else { return }
      for start in 0...(count - subject.count)
      where losses > 0 && buffer[start..<start + subject.count].elementsEqual(subject) {
        let end = start + subject.count - 1
        buffer.replaceSubrange(end - other.count..<end, with: other)
        state.withLock { $0.losses -= 1 }
      }
    }
  }

  /// The first requests of a worker, one for items and one for those that wait for their time, are lost without a word. It
  /// repeats them. `PartTests` says when.
  @Test func lostRequest() async throws {
    let servers = try await TestServers.start(1)
    defer { servers.stop() }
    let path = try Path(to: servers.addresses[0])
    defer { path.end() }
    let cluster = try await Cluster.connect(servers: [path.address], replicas: 1, timeout: .seconds(300))
    let queue = ClusterQueue<Int>(label: "lost", on: cluster)
    for item in 0..<10 { try await queue.async(item) }
    path.lose(2)
    let (runs, gauge) = (Log<Int>(), Gauge())
    let registration = try await queue.handle { item in
      gauge.enter()
      runs.append(item)
      gauge.leave()
    }
    #expect(await runs.until(10) == Array(0..<10))
    #expect(path.losses == 0)
    #expect(gauge.most == 1)
    registration.cancel()
    await cluster.shutdown()
  }

  /// A worker and a submitter are cut off while they have items. Another worker gets the items; the submission returns
  /// when the network is whole again; and what the worker has finished meanwhile does not count.
  @Test func cutConnection() async throws {
    let servers = try await TestServers.start(1)
    defer { servers.stop() }
    let path = try Path(to: servers.addresses[0])
    defer { path.end() }
    let near = try await Cluster.connect(servers: servers.addresses, replicas: 1, timeout: .seconds(300))
    let far = try await Cluster.connect(servers: [path.address], replicas: 1, timeout: .seconds(300))
    func queue(on cluster: Cluster) -> ClusterQueue<Int> {
      var options = ClusterQueueOptions()
      options.patience = .seconds(2)
      return ClusterQueue(label: "cut", attributes: .concurrent, options: options, on: cluster)
    }
    let (nearQueue, farQueue) = (queue(on: near), queue(on: far))
    let (started, gate, runs) = (Log<Int>(), Gate(), Log<Int>())
    for item in 0..<4 { try await nearQueue.async(item) }
    let registration = try await farQueue.handle(width: 4) { item in
      started.append(item)
      await gate.pass()
    }
    await started.until(4)
    // It asks for no more, so only this path has the items.
    registration.cancel()
    let before = path.connections
    path.cut(true)
    async let submission = farQueue.async(4, id: "4")
    _ = try await nearQueue.handle(width: 4) { runs.append($0) }
    #expect(Set(await runs.until(4)) == [0, 1, 2, 3])
    gate.open()
    // How long the cut lasts; the client finds its connection lost meanwhile, and tries others.
    try await Task.sleep(for: .seconds(30))
    let tries = path.connections - before
    #expect((1...20).contains(tries), "it tried to connect \(tries) times in 30 s")
    path.cut(false)
    _ = try await submission
    await runs.until(5)
    try await eventually { try await nearQueue.pendingCount() == 0 }
    #expect(runs.all.sorted() == [0, 1, 2, 3, 4])
    #expect(started.all.sorted() == [0, 1, 2, 3])
    await far.shutdown()
    await near.shutdown()
  }
}
