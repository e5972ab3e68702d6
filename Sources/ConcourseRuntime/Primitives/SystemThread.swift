internal import CConcourse

/// Threads of the engine's own.
enum SystemThread {
  /// Starts a detached thread that runs `entry(argument)` with signals blocked.
  /// - Returns: 0, or the errno when the system has no thread left.
  static func spawn(
    _ entry: @escaping @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer?,
    _ argument: UnsafeMutableRawPointer?
  ) -> Int32 {
    _ = Process.watchesForks
    settleLazies()
    Process.noteThread()
    return concourse_spawn(entry, argument)
  }

  /// Makes what is made on first use, while there is one thread.
  ///
  /// In a child forked by a program that had not used the runtime yet (a daemon, say), two threads that come to such a
  /// place at once may wait for ever: Swift's runtime remembers the id that the forking thread had before.
  private static func settleLazies() {
    _ = PoolSize.width
    _ = PoolSize.cap
    _ = Observation.isActive
    _ = SystemScript.isActive
    _ = (EventLoop.shared, EventLoop.timers, EventLoop.files)
    _ = NodeMagazine.stock
  }

  /// Lets the calling thread take what signals the program has allowed meanwhile.
  static func adoptSignals() { concourse_signal_adopt() }

  /// Names the calling thread for `ps`, `top` and debuggers; 15 bytes at most.
  static func setName(_ name: StaticString) {
    concourse_set_thread_name(UnsafeRawPointer(name.utf8Start).assumingMemoryBound(to: CChar.self))
  }

  /// Lowers the calling thread for good: an unprivileged thread cannot climb back.
  static func lower(nice: Int32, idleIO: Bool) {
    CurrentThread.state.pointee.nice = nice
    // Refused in some sandboxes; the band then runs at the normal level, which is only less polite.
    if nice != 0 { _ = concourse_set_nice(0, nice) }
    if idleIO { _ = concourse_set_idle_io() }
  }

  /// Whether a thread of this process sleeps in the kernel: nil when it cannot be told.
  static func isAsleep(_ id: UInt32) -> Bool? {
    switch UInt8(bitPattern: concourse_thread_state(id)) {
    case 0: nil
    case UInt8(ascii: "R"): false
    default: true
    }
  }
}
