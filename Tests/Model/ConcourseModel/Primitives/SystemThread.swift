public import CConcourse
internal import Glibc

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

  static var id: UInt32 {
    let state = Self.state
    if state.pointee.id == 0 { state.pointee.id = kernelID }
    return state.pointee.id
  }

  static var isMain: Bool { id == Process.id }

  /// Always succeeds without the hook: `NodeStock.collect` takes the nodes back after the execution.
  static func watchExit() -> Bool { true }
}

/// The engine's own threads, in the model: coroutines that may sleep forever without a deadlock.
enum SystemThread {
  static func exists(_ thread: UInt32) -> Bool { true }
  /// Starts a coroutine that runs `entry(argument)`.
  /// - Returns: 0, or EAGAIN under `ModelFaults.refusesThreads`.
  static func spawn(
    _ entry: @escaping @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer?,
    _ argument: UnsafeMutableRawPointer?
  ) -> Int32 {
    guard let scheduler = Scheduler.arrive() else { return EAGAIN }
    if ModelFaults.refusesThreads { return EAGAIN }
    let nice = CurrentThread.state.pointee.nice
    scheduler.spawn("engine", isBackground: true) {
      CurrentThread.state.pointee.nice = nice
      _ = entry(argument)
    }
    return 0
  }

  /// The model has no signals.
  static func adoptSignals() {}

  /// The model starts no processes.
  static func beginWorker() {}

  /// Names the coroutine in traces. The threads that serve all classes must not have a low priority.
  static func setName(_ name: StaticString) {
    Scheduler.current?.running?.name = name.description
    guard ["concourse-watch", "concourse-event"].contains(name.description) else { return }
    Model.check(CurrentThread.state.pointee.nice == 0, "a lowered thread made \(name)")
  }

  /// The model has no priorities, but a thread inherits the nice value of the band or thread that has made it.
  static func isNice(above nice: Int32) -> Bool { false }
  static func adoptScheduling() {}
  static var processNice: Int32 { 0 }
  static func mayTake(nice: Int32) -> Bool { false }
  static func setNice(_ nice: Int32) {}
  static func setSlice(_ nanoseconds: UInt64) {}
  static var endMayCancelRequests: Bool { false }

  /// Whether a coroutine sleeps on a word; nil for an unknown id.
  static func isAsleep(_ id: UInt32) -> Bool? {
    guard let scheduler = Scheduler.arrive() else { return nil }
    return scheduler.isAsleep(Int(id) - 1)
  }

  /// The model has no such clock.
  static func processorTime(of id: UInt32) -> UInt64? { nil }
}
