/// The one pool of a process: the bands of workers, their roots, the monitor.
///
/// Its tables are plain memory: for an array, Swift's runtime would first make the array's type, which takes 40 µs of
/// the start of a program.
package final class Runtime {
  /// The three bands of each shard, from the most to the least urgent. Never freed.
  package let bands: UnsafeBufferPointer<Band>
  /// The roots of each shard, indexed by `QoSLevel.rawValue`; the first is default's. Never released: counting references on each submission
  /// would make all threads write one cache line.
  let roots: UnsafeMutablePointer<Unmanaged<RootQueue>>
  /// Watches over workers that make no progress.
  package let monitor = Monitor()
  /// Whether there is no worker because the system has refused the last thread. A thread that waits for its turn looks
  /// at it again and again while it is true, and so needs no order.
  let lacksWorkers = Atomic<Bool>(false)
  /// Whether a refusal of a worker's thread has been reported.
  let refusalIsReported = Atomic<Bool>(false)
  /// Whether entries may have been promised threads of their own. A monitor that reads false too late looks again.
  let hasPromised = Atomic<Bool>(false)

  init() {
    let priority = Priority.ofProcess
    let topology = PoolSize.topology
    PoolSize.divide()
    let shards = topology?.shardCount ?? 1
    PoolSize.processorsAtStart = PoolSize.width
    PoolSize.hasManyProcessors = shards > 1 || PoolSize.width > 2
    NodeSlab.strideOfNew.value = shards > 1 ? NodeSlab.spread : NodeSlab.dense
    let bands = UnsafeMutablePointer<Band>.allocate(capacity: shards * 3)
    roots = .allocate(capacity: shards * QoSLevel.count)
    self.bands = UnsafeBufferPointer(start: bands, count: shards * 3)
    for shard in 0..<shards {
      // Mostly no two shards share a cache line.
      if shard > 0 { Shard.separate() }
      let first = bands + shard * 3
      first.initialize(to: Band(name: "concourse", level: .default, priority, monitor, shard: shard))
      (first + 1).initialize(to: Band(name: "concourse-ut", level: .utility, priority, monitor, shard: shard))
      (first + 2).initialize(
        to: Band(name: "concourse-bg", level: .background, priority, monitor, shard: shard))
      makeRoots(of: shard)
    }
    if let topology { Shard.connect(self.bands, topology) }
    Spin.note(processors: PoolSize.width)
    Self.publish(self, topology)
    Recording.beginIfAsked()
  }

  private func makeRoots(of shard: Int) {
    let (bands, roots) = (
      UnsafeBufferPointer(rebasing: bands[(shard * 3)...]), roots + shard * QoSLevel.count
    )
    func make(_ level: QoSLevel, _ band: Band) -> Unmanaged<RootQueue> {
      let forEver = Unmanaged.passRetained(RootQueue(level: level, band: band))
      (roots + Int(level.rawValue)).initialize(to: forEver)
      return forEver
    }
    let byDefault = make(.default, bands[0])
    (roots + Int(QoSLevel.unspecified.rawValue)).initialize(to: byDefault)
    bands[0].serve(make(.userInteractive, bands[0]))
    bands[0].serve(make(.userInitiated, bands[0]))
    bands[0].serve(byDefault)
    bands[1].serve(make(.utility, bands[1]))
    bands[2].serve(make(.background, bands[2]))
  }

  /// Whether workers of normal priority run something, or look for it.
  package var hasActiveWorkers: Bool { bands.contains { !$0.isLowered && $0.counters.snapshot.active > 0 } }

  /// Wakes a worker of normal priority, so that it waits for events; makes one only if none is parked.
  package func wakeOneForEvents() {
    (bands.first { !$0.isLowered && $0.counters.snapshot.parked > 0 } ?? bands[0]).wakeOne()
  }

  package var shardCount: Int { bands.count / 3 }

  /// The number of shards that the runtime has, or will have; does not make it.
  package static var processShards: Int { PoolSize.topology?.shardCount ?? 1 }

  /// The shard of the calling thread.
  package static var shardOfThread: Int { Shard.ofThread }

  /// Resets the counts in a forked child, where only the calling thread exists. A submission then asks for a
  /// worker, and traps.
  func forgetThreads() {
    for band in bands { band.counters.reset() }
  }

  /// Traps in a forked child, which has no workers and must not wait for any.
  package static func requireThreads(_ deed: String) {
    if Process.isForkedChild {
      Trap.clientBug(
        407,
        "\(deed) in a forked child process, which has no worker threads; only exec and sync on idle "
          + "queues work after fork")
    }
  }

  /// Traps in a forked child that would wait for a thread of the parent.
  static func refuseWait(_ deed: String) -> Never {
    requireThreads(deed)
    Trap.clientBug(413, "\(deed) in a forked child process, in which that thread does not exist")
  }
}

// SAFETY: everything is constant after `init`.
extension Runtime: @unchecked Sendable {}
