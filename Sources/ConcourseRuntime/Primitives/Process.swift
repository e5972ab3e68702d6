internal import CConcourse
internal import Glibc

/// Facts of the process that a fork changes.
package enum Process {
  // ORDERING: relaxed; the words are only rewritten by the fork handler, while the child has one thread.
  private static let identifier = Atomic<UInt32>(readId())
  private static let forked = Atomic<Bool>(false)

  /// The process id, which is also the main thread's id.
  static var id: UInt32 {
    // ORDERING: relaxed; see above.
    identifier.load(ordering: .relaxed)
  }

  /// The process id as the kernel says it, also in a child whose fork was not noted.
  static func readId() -> UInt32 { UInt32(getpid()) }

  /// Whether this process is a forked child that has not called exec: it has no worker threads.
  package static var isForkedChild: Bool {
    // ORDERING: relaxed; see above.
    forked.load(ordering: .relaxed)
  }

  /// Runs `child` in each child that is forked from now on.
  static func watchForks(_ child: @convention(c) () -> Void) {
    _ = id
    // Refused only for want of memory. Then a misuse after fork hangs instead of trapping.
    _ = concourse_at_fork_child(child)
  }

  /// Records that the process is a forked child and the caller its only thread.
  static func becomeForkedChild() {
    CurrentThread.state.pointee.id = 0
    (CurrentThread.state.pointee.worker, CurrentThread.state.pointee.delivering) = (nil, nil)
    // ORDERING: relaxed; the child has exactly one thread.
    identifier.store(readId(), ordering: .relaxed)
    forked.store(true, ordering: .relaxed)
  }

  // MARK: Threads

  static let threadsWereMade = Atomic<Bool>(false)
  static let threadsAreForbidden = Atomic<Bool>(false)

  /// Records that a thread is about to be made.
  static func noteThread() {
    // ORDERING: relaxed, both; a program forbids threads before it submits work that needs one.
    threadsWereMade.store(true, ordering: .relaxed)
    if threadsAreForbidden.load(ordering: .relaxed) {
      Trap.clientBug(
        409, "a worker thread is needed, but the program has forbidden the runtime to make threads")
    }
  }
}

/// The machine under the engine.
package enum Processor {
  /// Tells the processor that this is a spin loop.
  @inline(__always)
  static func pause() { concourse_pause() }

  /// Processors that this process may run on; at least 1.
  static var affinityCount: Int { Int(concourse_affinity_count()) }
}

extension Processor {
  /// Lets another thread have this processor.
  static func yield() { sched_yield() }
}

extension Processor {
  /// A tuning constant. The model uses a smaller one, so that it reaches rare paths.
  @inline(__always)
  package static func number(_ value: UInt32, inModel: UInt32) -> UInt32 { value }

  /// A setting from the environment, or nil.
  package static func environment(_ name: String) -> String? {
    getenv(name).map { String(cString: $0) }
  }
}
