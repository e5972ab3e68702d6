public import CConcourse
internal import Glibc

/// The calling thread, as the engine knows it.
@usableFromInline
package enum CurrentThread {
  /// The engine's per-thread state: one thread-local load, no initialisation.
  @inlinable
  package static var state: UnsafeMutablePointer<concourse_thread> {
    @inline(__always) get { concourse_thread_current() }
  }

  /// The kernel's thread id; never 0.
  static var kernelID: UInt32 { concourse_gettid() }

  /// The kernel's thread id, cached; never 0.
  package static var id: UInt32 {
    let state = Self.state
    let known = state.pointee.id
    return known != 0 ? known : learnID(state)
  }

  /// Whether the calling thread is the one that the process began with.
  static var isMain: Bool { id == Process.id }

  @inline(never)
  private static func learnID(_ state: UnsafeMutablePointer<concourse_thread>) -> UInt32 {
    let id = kernelID
    state.pointee.id = id
    // No item runs on a thread without an id.
    _ = watchExit()
    return id
  }

  /// Lets the hook `concourse_thread_exits` run when this thread exits.
  /// - Returns: false if it will not run: it has run already, or the system has no key left.
  static func watchExit() -> Bool {
    let state = Self.state
    if state.pointee.exit_hook == CONCOURSE_EXIT_UNWATCHED { concourse_watch_exit(concourse_thread_exits) }
    return state.pointee.exit_hook == CONCOURSE_EXIT_WATCHED
  }
}

/// The engine's own threads.
package enum SystemThread {
  /// Whether the process has a thread of this id.
  static func exists(_ thread: UInt32) -> Bool { concourse_thread_exists(thread) }

  /// Starts a detached thread that runs `entry(argument)` with signals blocked.
  /// - Returns: 0, or the errno if the system has no thread left.
  static func spawn(
    _ entry: @escaping @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer?,
    _ argument: UnsafeMutableRawPointer?
  ) -> Int32 {
    return Int32(-System.call(.thread) { -Int(concourse_spawn(entry, argument)) })
  }

  /// Unblocks the signals that the program has allowed meanwhile on the calling thread.
  static func adoptSignals() { concourse_signal_adopt() }

  /// Notes the calling thread as a worker: processes that it starts get what the process has.
  static func beginWorker() { concourse_begin_worker() }

  /// Names the calling thread for `ps`, `top` and debuggers; 15 bytes at most.
  package static func setName(_ name: StaticString) {
    assert(name.utf8CodeUnitCount <= 15, "the system refuses longer names")
    concourse_set_thread_name(UnsafeRawPointer(name.utf8Start).assumingMemoryBound(to: CChar.self))
  }

  /// Sleeps for about this time, at most a second. The pool is not told: for threads that are not its workers.
  package static func sleep(microseconds: UInt32) { usleep(min(microseconds, 999_999)) }

  /// Whether the calling thread's nice value is above this one, as far as the system allows the question.
  static func isNice(above nice: Int32) -> Bool { concourse_is_lowered(nice) }

  /// Gives the calling thread the scheduling policy of the process's first thread, unless that is a real-time one, its
  /// timer slack and its I/O priority, and lets it use that thread's processors, too. If the system refuses, the thread keeps what it has inherited.
  package static func adoptScheduling() { concourse_adopt_scheduling() }

  /// The nice value of the process's first thread.
  static var processNice: Int32 { concourse_process_nice() }

  /// Whether threads may take this nice value.
  static func mayTake(nice: Int32) -> Bool { concourse_may_take_nice(nice) }

  /// Gives the calling thread a nice value. If the system refuses, the thread keeps the one it has.
  package static func setNice(_ nice: Int32) { _ = concourse_set_nice(nice) }

  /// Sets the calling thread's time slice, if the kernel supports it.
  static func setSlice(_ nanoseconds: UInt64) { _ = concourse_set_slice(nanoseconds) }

  /// Whether threads that end may take requests of the program with them: those that they have submitted to an io_uring.
  static var endMayCancelRequests: Bool { concourse_has_foreign_ring() }

  /// Whether a thread of this process sleeps in the kernel; nil if unknown.
  static func isAsleep(_ id: UInt32) -> Bool? {
    switch UInt8(bitPattern: concourse_thread_state(id)) {
    case 0: nil
    case UInt8(ascii: "R"): false
    default: true
    }
  }

  /// The processor's time that a thread of this process has used, in nanoseconds; nil if unknown.
  static func processorTime(of id: UInt32) -> UInt64? {
    let time = concourse_processor_time(id)
    return time == 0 ? nil : time
  }
}
