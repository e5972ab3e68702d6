public import CConcourse

/// The calling thread, as the engine knows it.
@usableFromInline
enum CurrentThread {
  /// The engine's per-thread state: one thread-local load, no initialisation.
  @inlinable
  static var state: UnsafeMutablePointer<concourse_thread> {
    @inline(__always) get { concourse_thread_current() }
  }

  /// The kernel's thread id; never 0.
  static var kernelID: UInt32 { concourse_gettid() }

  /// Runs `hook` when this thread exits; the first call on a thread decides.
  /// - Returns: false if a hook will not run: it has run already, or the system has no key left.
  static func watchExit(_ hook: @convention(c) () -> Void) -> Bool {
    let state = Self.state
    if state.pointee.exit_hook == CONCOURSE_EXIT_UNWATCHED { concourse_watch_exit(hook) }
    return state.pointee.exit_hook == CONCOURSE_EXIT_WATCHED
  }
}
