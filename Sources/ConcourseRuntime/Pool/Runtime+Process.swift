internal import CConcourse
internal import Glibc

extension Runtime {
  /// The process's one runtime. The model build replaces this file, to begin each execution afresh.
  package static let shared = Runtime()

  /// The root queues by level, without the look at whether the runtime has been made: no queue exists
  /// before it has.
  @inline(__always)
  static var rootTable: UnsafeMutablePointer<Unmanaged<RootQueue>> {
    // SAFETY: `publish` stored exactly this type, before the first queue was made.
    concourse_roots()!.assumingMemoryBound(to: Unmanaged<RootQueue>.self)
  }

  /// Makes the tables of a new runtime reachable without it.
  static func publish(_ runtime: Runtime) {
    concourse_set_roots(UnsafeMutableRawPointer(runtime.roots))
  }

  // MARK: Threads and forks

  /// Starts a thread of the engine's own, as `SystemThread.spawn` does.
  package static func startThread(
    _ entry: @escaping @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer?,
    _ argument: UnsafeMutableRawPointer?
  ) -> Int32 {
    // First, since the child's fork handler uses the stock.
    settleLazies()
    _ = watchesForks
    Process.noteThread()
    return SystemThread.spawn(entry, argument)
  }

  /// Makes what is made on first use, while there is one thread.
  ///
  /// In a child forked by a program that had not used the runtime yet (a daemon, say), two threads that come to such a
  /// place at once may wait for ever: Swift's runtime remembers the id that the forking thread had before.
  private static func settleLazies() {
    if concourse_is_forked() { PoolSize.settleWidth() } else { _ = PoolSize.width }
    _ = PoolSize.cap
    _ = Observation.isActive
    _ = SystemScript.isActive
    _ = eventDriver
    _ = NodeMagazine.stock
  }

  /// The driver that ConcourseEvents has; nil in a program without that module.
  static let eventDriver: (any EventDriver)? = {
    var driver: (any EventDriver)?
    // SAFETY: the other side stores exactly this type.
    withUnsafeMutablePointer(to: &driver) { concourse_find_event_driver($0) }
    return driver
  }()

  /// Notices forks from the first use on: before the process makes its first thread.
  private static let watchesForks: Void = Process.watchForks { Runtime.becomeForkedChild() }

  fileprivate static func becomeForkedChild() {
    Process.becomeForkedChild()
    NodeMagazine.stock.abandonStock()
    forgetThreads()
  }
}

/// What the C interface asks and says about the process.
package enum ProcessFacts {
  /// Lets the pool's threads take a signal that is sent to them: new ones at once, others before one of their next items.
  /// Matching C function: `dispatch_allow_send_signals`.
  /// - Returns: 0, or EINVAL for what is no signal or cannot be caught.
  package static func allowSignal(_ signal: Int32) -> Int32 { concourse_signal_allow(signal) }

  /// Whether the runtime has made threads. Matching C function: `_dispatch_is_multithreaded`.
  package static var isMultithreaded: Bool {
    // ORDERING: relaxed; it never becomes false again.
    Process.threadsWereMade.load(ordering: .relaxed)
  }

  /// Whether this is a child that was forked from a process with threads of the runtime's, and so has none.
  /// Matching C function: `_dispatch_is_fork_of_multithreaded_parent`.
  package static var isForkOfMultithreadedParent: Bool { Process.isForkedChild && isMultithreaded }

  /// From now on needing a thread traps, or does no longer. Traps if there are threads already. Matching C
  /// function: `_dispatch_prohibit_transition_to_multithreaded`.
  package static func forbidThreads(_ forbid: Bool) {
    if forbid && isMultithreaded {
      Trap.clientBug("threads were forbidden when the runtime had made some already")
    }
    // ORDERING: relaxed; see `noteThread`.
    Process.threadsAreForbidden.store(forbid, ordering: .relaxed)
  }

  /// For a child made without the C library's `fork`, which would have told us. Elsewhere nothing happens.
  /// Matching C function: `dispatch_atfork_child`.
  package static func noteFork() {
    if isMultithreaded && Process.id != UInt32(getpid()) { Runtime.becomeForkedChild() }
  }
}
