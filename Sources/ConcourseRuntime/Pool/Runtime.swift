/// The one pool of a process: the bands of workers, their roots, the monitor.
///
/// Its tables are plain memory: for an array, Swift's runtime would first make the array's type, which takes 40 µs of
/// the start of a program.
package final class Runtime {
  /// The bands, from the most to the least urgent. Never freed.
  package let bands: UnsafeBufferPointer<Band>
  /// Indexed by `QoSLevel.rawValue`; the first is default's. Never released: counting references on each submission
  /// would make all threads write one cache line.
  let roots: UnsafeMutablePointer<Unmanaged<RootQueue>>
  /// Watches over workers that make no progress.
  package let monitor = Monitor()
  /// Whether there is no worker because the system has refused the last thread. A thread that waits for its turn looks
  /// at it again and again while it is true, and so needs no order.
  let lacksWorkers = Atomic<Bool>(false)
  /// Whether entries may have been promised threads of their own. A monitor that reads false too late looks again.
  let hasPromised = Atomic<Bool>(false)

  init() {
    let priority = Priority.ofProcess
    let bands = UnsafeMutablePointer<Band>.allocate(capacity: 3)
    bands.initialize(to: Band(name: "concourse", level: .default, priority, monitor))
    (bands + 1).initialize(to: Band(name: "concourse-ut", level: .utility, priority, monitor))
    (bands + 2).initialize(to: Band(name: "concourse-bg", level: .background, priority, monitor))
    self.bands = UnsafeBufferPointer(start: bands, count: 3)

    roots = .allocate(capacity: 6)
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
    Spin.note(processors: PoolSize.width)
    Self.publish(self)
    Recording.beginIfAsked()
  }

  /// The root queue that serves work of `level`.
  @inline(__always)
  static func root(at level: QoSLevel) -> Unmanaged<RootQueue> {
    rootTable[Int(level.rawValue)]
  }

  /// Whether workers of normal priority run something, or look for it.
  package var hasActiveWorkers: Bool { bands[0].counters.snapshot.active > 0 }

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
}

// SAFETY: everything is constant after `init`.
extension Runtime: @unchecked Sendable {}
