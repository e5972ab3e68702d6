extension Runtime {
  // SAFETY: both are accessed only on the exploring thread; explorations run one at a time.
  private nonisolated(unsafe) static var stored: Runtime?
  private nonisolated(unsafe) static var roots: UnsafeMutablePointer<Unmanaged<RootQueue>>?

  // SAFETY: as above.
  /// What happened before the runtime existed. As with any lazy global, each use happens after that.
  private nonisolated(unsafe) static var creation = VectorClock()

  /// The execution's runtime, created on first use.
  static var shared: Runtime {
    if let stored {
      followCreation()
      return stored
    }
    // Whichever thread uses it first, its words have the same keys.
    let made = makeOnce(keysFrom: 1) { Runtime() }
    stored = made
    creation = Scheduler.current?.running?.clock ?? VectorClock()
    return made
  }

  private static func followCreation() { Scheduler.current?.running?.clock.join(creation) }

  /// The root queues by level: no queue exists before `publish`.
  static var rootTable: UnsafeMutablePointer<Unmanaged<RootQueue>> {
    followCreation()
    return roots!
  }

  /// The event loop, if the scenario uses one.
  static var eventDriver: (any EventDriver)? { EventLoop.isUsed ? EventLoop.shared : nil }

  static func publish(_ runtime: Runtime, _: Topology?) { roots = runtime.roots }

  static func startThread(
    _ entry: @escaping @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer?,
    _ argument: UnsafeMutableRawPointer?
  ) -> Int32 { SystemThread.spawn(entry, argument) }

  /// Discards the last execution's runtime, so that the next one starts in a fresh process.
  ///
  /// Frees what the engine creates once per process and never frees; the model runs thousands of executions.
  static func beginAfresh() {
    EventLoop.beginAfresh()
    Process.beginAfresh()
    ProcessQueues.beginAfresh()
    guard let last = stored else { return }
    for band in last.bands {
      for worker in Array(band.workers) + band.freeRecords { worker.deinitialize(count: 1).deallocate() }
    }
    // The first entry of a shard is another reference to its default root.
    for shard in 0..<last.shardCount {
      for level in 1..<QoSLevel.count { last.roots[shard * QoSLevel.count + level].release() }
    }
    last.roots.deallocate()
    let bands = UnsafeMutableBufferPointer(mutating: last.bands)
    bands.deinitialize()
    bands.deallocate()
    (stored, roots) = (nil, nil)
    creation = VectorClock()
    while PoolSize.threadCount > 0 { PoolSize.threadEnded() }
    // ORDERING: relaxed; outside executions. A loop that failed has left participants.
    ParallelLoop.participants.count.store(0, ordering: .relaxed)
    PoolSize.topology = nil
    _ = PoolSize.refreshWidth()
  }
}

extension ProcessQueues {
  // SAFETY: as for `Runtime`.
  private nonisolated(unsafe) static var stored: ProcessQueues?
  private nonisolated(unsafe) static var creation = VectorClock()

  /// The execution's queues, created on first use.
  static var shared: ProcessQueues {
    if let stored {
      Scheduler.current?.running?.clock.join(creation)
      return stored
    }
    _ = Runtime.shared
    let made = makeOnce(keysFrom: 1_000) { ProcessQueues() }
    stored = made
    creation = Scheduler.current?.running?.clock ?? VectorClock()
    return made
  }

  fileprivate static func beginAfresh() {
    guard let last = stored else { return }
    for level in 1..<QoSLevel.count { last.globals[level].release() }
    last.globals.deallocate()
    stored = nil
    creation = VectorClock()
  }
}

extension EventLoop {
  // SAFETY: all are accessed only on the exploring thread; explorations run one at a time.
  private(set) nonisolated(unsafe) static var shared = EventLoop()
  // SAFETY: as above.
  private(set) nonisolated(unsafe) static var timers = TimerTables(shards: 1)
  // SAFETY: as above.
  private(set) nonisolated(unsafe) static var files = WatchTable()
  // SAFETY: as above.
  fileprivate nonisolated(unsafe) static var isUsed = false

  /// Discards the last execution's event loop and its kernel.
  static func beginAfresh() {
    if isUsed { (shared, timers, files, isUsed) = (EventLoop(), TimerTables(shards: 1), WatchTable(), false) }
    ModelKernel.beginAfresh()
  }

  /// Lets the scenario use sources and timers, and makes the event queue and the loop's thread. Most scenarios do
  /// without, as programs that link the queues only. Comes after `Model.setTopology`.
  /// - Parameter begins: false if the first source or timer is to make them.
  static func use(begins: Bool = true) {
    isUsed = true
    if timers.shards != Runtime.processShards { timers = TimerTables(shards: Runtime.processShards) }
    if begins { _ = shared.begin() }
  }
}

/// Makes what a process has once. Whichever thread uses it first, its words have the same keys.
private func makeOnce<Value>(keysFrom first: UInt64, _ make: () -> Value) -> Value {
  #if !LEDGER
    if let scheduler = Scheduler.current {
      scheduler.partialOrder?.touchAll()
      var made: Value?
      scheduler.makeWords(keysFrom: UInt64(VectorClock.capacity) + first) { made = make() }
      return made!
    }
  #endif
  return make()
}
