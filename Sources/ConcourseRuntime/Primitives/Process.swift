internal import CConcourse
internal import Glibc

/// Facts of the process that a fork changes.
enum Process {
  // ORDERING: relaxed; the words are only rewritten by the fork handler, while the child has one thread.
  private static let identifier = Atomic<UInt32>(UInt32(getpid()))
  private static let forked = Atomic<Bool>(false)

  /// The process id, which is also the main thread's id.
  static var id: UInt32 {
    // ORDERING: relaxed; see above.
    identifier.load(ordering: .relaxed)
  }

  /// Whether this process is a forked child that has not called exec: it has no worker threads.
  static var isForkedChild: Bool {
    // ORDERING: relaxed; see above.
    forked.load(ordering: .relaxed)
  }

  /// Notices forks from the first use on: before the process makes its first thread.
  static let watchesForks: Bool = {
    _ = id
    // Refused only for want of memory; then a misuse after fork hangs instead of trapping.
    return concourse_at_fork_child { Process.becomeForkedChild() } == 0
  }()

  fileprivate static func becomeForkedChild() {
    CurrentThread.state.pointee.id = 0
    CurrentThread.state.pointee.worker = nil
    // ORDERING: relaxed; the child has exactly one thread.
    Process.identifier.store(UInt32(getpid()), ordering: .relaxed)
    Process.forked.store(true, ordering: .relaxed)
    NodeMagazine.stock.abandonStock()
    Runtime.forgetThreads()
  }

  // MARK: Threads

  fileprivate static let threadsWereMade = Atomic<Bool>(false)
  fileprivate static let threadsAreForbidden = Atomic<Bool>(false)

  /// A thread is about to be made.
  static func noteThread() {
    // ORDERING: relaxed, both; whoever forbids threads says so before it submits what would need one.
    threadsWereMade.store(true, ordering: .relaxed)
    if threadsAreForbidden.load(ordering: .relaxed) {
      Trap.clientBug("a worker thread is needed, but the program has forbidden the runtime to make threads")
    }
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
    if isMultithreaded && Process.id != UInt32(getpid()) { Process.becomeForkedChild() }
  }
}
