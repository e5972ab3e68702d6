public import CConcourse

/// The calling coroutine, as the engine knows a thread.
@usableFromInline
enum CurrentThread {
  /// Stands in for the thread-local structure outside executions, when hooks reset the engine.
  // SAFETY: allocated once, never freed; explorations run one at a time.
  private nonisolated(unsafe) static let outside: UnsafeMutablePointer<concourse_thread> = {
    let state = UnsafeMutablePointer<concourse_thread>.allocate(capacity: 1)
    state.initialize(to: concourse_thread())
    return state
  }()

  /// The engine's per-thread state: every coroutine has its own.
  @usableFromInline
  static var state: UnsafeMutablePointer<concourse_thread> {
    Scheduler.current?.running?.threadState ?? outside
  }

  /// The coroutine's number plus 1; the scenario's body has 1, as the main thread has the process id.
  static var id: UInt32 {
    let id = UInt32(Scheduler.current?.running?.id ?? 0) + 1
    state.pointee.id = id
    return id
  }

  /// Whether this is the scenario's own body.
  static var isMain: Bool { id == Process.id }

  /// Coroutines may keep nodes without a hook: `NodeStock.collect` takes them back after the execution.
  static func watchExit(_ hook: @convention(c) () -> Void) -> Bool { true }
}
