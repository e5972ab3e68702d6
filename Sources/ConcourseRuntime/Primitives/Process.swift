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
    return concourse_at_fork_child {
      CurrentThread.state.pointee.id = 0
      CurrentThread.state.pointee.worker = nil
      // ORDERING: relaxed; the child has exactly one thread.
      Process.identifier.store(UInt32(getpid()), ordering: .relaxed)
      Process.forked.store(true, ordering: .relaxed)
      Runtime.forgetThreads()
    } == 0
  }()
}
