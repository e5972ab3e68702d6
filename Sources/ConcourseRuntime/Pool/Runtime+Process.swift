internal import CConcourse
internal import Glibc

extension Runtime {
  /// The process's one runtime. The model build replaces this file, to begin each execution afresh.
  package static let shared = Runtime()

  /// The root queues by level, without a check whether the runtime has been made: no queue exists before that.
  @inline(__always)
  static var rootTable: UnsafeMutablePointer<Unmanaged<RootQueue>> {
    // SAFETY: `publish` stored exactly this type, before the first queue was made.
    concourse_roots()!.assumingMemoryBound(to: Unmanaged<RootQueue>.self)
  }

  /// Publishes the tables of a new runtime, so that they are found without it.
  static func publish(_ runtime: Runtime, _ topology: Topology?) {
    concourse_set_roots(UnsafeMutableRawPointer(runtime.roots))
    if let topology { publish(topology) }
    concourse_at_fork(
      { runtime in
        // SAFETY: the context below; the runtime is never freed.
        Unmanaged<Runtime>.fromOpaque(runtime!).takeUnretainedValue().becomeForkedChild()
      }, Unmanaged.passRetained(runtime).toOpaque())
  }

  /// Lets threads find their shards.
  private static func publish(_ topology: Topology) {
    // Larger numbers wrap around.
    let count = topology.isPretended ? topology.shardCount : Topology.mostProcessors
    let table = UnsafeMutablePointer<UInt8>.allocate(capacity: count)
    for processor in 0..<count {
      let shard = topology.isPretended ? processor : topology.shard(of: processor)
      (table + processor).initialize(to: UInt8(shard))
    }
    concourse_set_shards(table, UInt32(count), topology.isPretended)
  }

  // MARK: Threads and forks

  /// Starts a thread of the engine's own, as `SystemThread.spawn` does.
  package static func startThread(
    _ entry: @escaping @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer?,
    _ argument: UnsafeMutableRawPointer?
  ) -> Int32 {
    // First, since the child's fork handler uses the depot.
    settleLazies()
    Process.noteThread()
    return SystemThread.spawn(entry, argument)
  }

  /// Makes everything that is made on first use, while there is one thread.
  ///
  /// In a child forked by a program that had not used the runtime yet (a daemon, say), two threads that reach such a
  /// value at once may wait for ever: Swift's runtime remembers the id that the forking thread had before.
  private static func settleLazies() {
    if concourse_is_forked() { PoolSize.settleWidth() } else { _ = PoolSize.width }
    _ = PoolSize.cap
    _ = SystemScript.isActive
    _ = eventDriver
    _ = NodeMagazine.depot
    concourse_settle_queues()
  }

  /// The driver of ConcourseEvents; nil in a program without that module.
  static let eventDriver: (any EventDriver)? = {
    var driver: (any EventDriver)?
    // SAFETY: the other side stores exactly this type.
    withUnsafeMutablePointer(to: &driver) { concourse_find_event_driver($0) }
    return driver
  }()

  /// The fork handler of the child. It does not use `shared`, which another thread may have been making at the fork.
  private func becomeForkedChild() {
    // A worker must not go on after the item that has called fork: it calls `rejoin` after an entry.
    // ORDERING: relaxed; the child has one thread.
    WorkerThread.current?.pointee.status.store(WorkerRecord.Status.absent, ordering: .relaxed)
    Process.becomeForkedChild()
    guard Process.isForkedChild else { return }
    NodeMagazine.depot.abandonStock()
    forgetThreads()
  }
}

/// Facts and settings of the process, for the C interface.
package enum ProcessFacts {
  /// Unblocks a signal in the pool's threads: in new ones at once, in others before one of their next items.
  /// Matching C function: `dispatch_allow_send_signals`.
  /// - Returns: 0, or EINVAL for a number that is not a signal or cannot be caught.
  package static func allowSignal(_ signal: Int32) -> Int32 { concourse_signal_allow(signal) }

  /// Whether the runtime has made threads. Matching C function: `_dispatch_is_multithreaded`.
  package static var isMultithreaded: Bool {
    // ORDERING: relaxed; it never becomes false again.
    Process.threadsWereMade.load(ordering: .relaxed)
  }

  /// Whether this is a forked child of a process that had threads of the runtime; the child has none.
  /// Matching C function: `_dispatch_is_fork_of_multithreaded_parent`.
  package static var isForkOfMultithreadedParent: Bool { Process.isForkedChild && isMultithreaded }

  /// Sets whether needing a thread traps from now on. Traps if the runtime has already made threads. Matching C
  /// function: `_dispatch_prohibit_transition_to_multithreaded`.
  package static func forbidThreads(_ forbid: Bool) {
    if forbid && isMultithreaded {
      Trap.clientBug(410, "threads were forbidden when the runtime had made some already")
    }
    // ORDERING: relaxed; see `noteThread`.
    Process.threadsAreForbidden.store(forbid, ordering: .relaxed)
  }

  /// Notes a fork that was made without the C library's `fork`, which calls the fork handler. Otherwise no effect.
  /// Matching C function: `dispatch_atfork_child`.
  package static func noteFork() { Process.noteFork() }
}
