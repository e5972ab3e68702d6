import Testing

@testable import ConcourseCluster

/// What a process tells Prometheus.
@Suite(.timeLimit(.minutes(10))) struct FiguresTests {
  @Test(arguments: EngineKind.allCases) func figuresCountWhatHappens(on engine: EngineKind) async throws {
    let cluster = try await engine.cluster()
    let label = engine.label()
    var options = ClusterQueueOptions()
    options.attempts = 2
    options.retryDelay = .milliseconds(1)
    let queue = ClusterQueue<Int>(label: label, attributes: .concurrent, options: options, on: cluster)
    let (started, gate) = (Log<Int>(), Gate())
    _ = try await queue.handle { item in
      started.append(item)
      if item == 3 { await gate.pass() }
      if item == 0 { throw Failed("zero") }
    }
    try await queue.async(0)
    try await eventually { try await queue.failedItems().count == 1 }
    for item in 1...4 { try await queue.async(item) }
    await started.until(5)
    // Two starts of item 0, items 1 and 2; item 3 runs, and item 4 waits for it.
    let name = "queue=\"\(label)\""
    let lines = [
      "concourse_cluster_submitted_total{\(name)} 5",
      "concourse_cluster_started_total{\(name)} 5",
      "concourse_cluster_ended_total{\(name),outcome=\"finished\"} 2",
      "concourse_cluster_ended_total{\(name),outcome=\"failed\"} 1",
      "concourse_cluster_ended_total{\(name),outcome=\"put_aside\"} 1",
      "concourse_cluster_running{\(name)} 1",
      "concourse_cluster_pending{\(name)} 2",
    ]
    // Ends reach the servers a moment later.
    try await eventually {
      let told = await cluster.prometheusText().split(separator: "\n").filter { !$0.hasPrefix("#") }
      return told.map(String.init) == lines
    }
    gate.open()
    await started.until(6)
    await cluster.shutdown()
  }

  /// An item whose handler has returned is put aside, too, if its result is too large.
  @Test(arguments: EngineKind.allCases) func itemCountsAsWhatBecomesOfIt(on engine: EngineKind) async throws {
    let cluster = try await engine.cluster()
    let queue = ClusterQueue<Int>(label: engine.label(), on: cluster)
    _ = try await queue.handle { String(repeating: "x", count: $0) }
    #expect(try await queue.run(1, returning: String.self) == "x")
    await #expect(throws: ClusterError.self) { try await queue.run(1_100_000, returning: String.self) }
    try await eventually {
      let counts = cluster.figures(of: queue.label).counts
      return (counts.finished, counts.failed, counts.putAside) == (1, 0, 1)
    }
    await cluster.shutdown()
  }

  @Test func textIsAsPrometheusReadsIt() {
    var counts = QueueFigures.Counts()
    counts.running = 7
    let text = Cluster.text(["a \"b\\\nc": counts], pending: [:])
    #expect(text.contains("\n# TYPE concourse_cluster_running gauge\n"))
    #expect(text.contains("\nconcourse_cluster_running{queue=\"a \\\"b\\\\\\nc\"} 7\n"))
    #expect(!text.contains("\nconcourse_cluster_pending{"))
    #expect(text.hasSuffix("\n"))
  }
}
