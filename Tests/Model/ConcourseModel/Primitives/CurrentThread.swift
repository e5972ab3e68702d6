public import CConcourse

/// The calling coroutine, in the role of the engine's current thread.
@usableFromInline
enum CurrentThread {
  /// The thread-local structure outside executions, when hooks reset the engine.
  // SAFETY: allocated once, never freed; explorations run one at a time.
  private nonisolated(unsafe) static let outside: UnsafeMutablePointer<concourse_thread> = {
    let state = UnsafeMutablePointer<concourse_thread>.allocate(capacity: 1)
    state.initialize(to: concourse_thread())
    return state
  }()

  /// The engine's per-thread state; each coroutine has its own.
  @usableFromInline
  static var state: UnsafeMutablePointer<concourse_thread> {
    Scheduler.current?.running?.threadState ?? outside
  }

  /// The coroutine's number plus 1. The scenario's body has 1, the process id, like a main thread.
  static var kernelID: UInt32 { UInt32(Scheduler.current?.running?.id ?? 0) + 1 }

  /// Always succeeds without the hook: `NodeStock.collect` takes the nodes back after the execution.
  static func watchExit(_ hook: @convention(c) () -> Void) -> Bool { true }
}
