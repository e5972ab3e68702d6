import ConcourseCluster
import Glibc
import Testing

/// A server whose disk is full.
@Suite(.timeLimit(.minutes(10))) struct DiskTests {
  /// Submissions fail with a clear error, and each that was acknowledged before runs once the disk has room.
  @Test(.enabled(if: geteuid() == 0, "only root may mount a disk")) func fullDiskLosesNothing() async throws {
    let servers = try await TestServers.start(1)
    defer { servers.stop() }
    servers.kill(0)
    guard try servers.limitDisk(of: 0, to: "8m") else {
      return print("a full disk is not tested: this process may not mount a disk")
    }
    try await servers.restart(0)
    let cluster = try await Cluster.connect(servers: servers.addresses, replicas: 1, timeout: .seconds(3))
    let queue = ClusterQueue<String>(label: "full", attributes: .concurrent, on: cluster)
    let filling = String(repeating: "x", count: 200_000)
    var stored: [String] = []
    let error = await #expect(throws: ClusterError.self) {
      for number in 0..<100 {
        try await queue.async("\(number) \(filling)")
        stored.append("\(number)")
      }
    }
    switch error {
    // A server of 2.9 or 2.15 says nothing; so the item may be stored.
    case .notAcknowledged("full", _, let reason): #expect(reason.contains("no answer"))
    // One of 2.10 refuses it.
    case .engine("full", let reason): #expect(reason.contains("no space left on device"))
    default: Issue.record("\(String(describing: error))")
    }
    #expect((10..<60).contains(stored.count))
    servers.kill(0)
    #expect(try servers.limitDisk(of: 0, to: "64m", again: true))
    try await servers.restart(0)
    let log = Log<String>()
    _ = try await queue.handle(width: 4) { log.append(String($0.prefix { $0 != " " })) }
    try await eventually { try await queue.pendingCount() == 0 }
    #expect(Set(log.all).isSuperset(of: stored))
    await cluster.shutdown()
  }
}
