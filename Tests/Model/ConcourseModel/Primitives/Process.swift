/// The process, in the model: it never forks.
enum Process {
  /// The process id, which is also the id of the scenario's body.
  static var id: UInt32 { 1 }

  static func readId() -> UInt32 { id }

  static var isForkedChild: Bool { false }

  static func watchForks(_ child: @convention(c) () -> Void) {}
}

/// The machine, in the model.
enum Processor {
  /// Marks the coroutine as spinning. It continues after another has changed a word, or when no other can run.
  static func pause() { Scheduler.current?.pause() }

  /// Lets another coroutine run.
  static func yield() { Scheduler.current?.pause() }

  /// The number of processors; a scenario sets it before it uses the engine.
  // SAFETY: read and written on the exploring thread only; explorations run one at a time.
  nonisolated(unsafe) static var affinityCount = 2
}

extension Processor {
  /// The model's number, unless a fault has removed the one of that name.
  static func number(_ value: UInt32, inModel: UInt32, name: String = #function) -> UInt32 {
    ModelFaults.never == name ? .max : inModel
  }

  /// The model has no environment variables: executions must not depend on the environment.
  static func environment(_ name: String) -> String? { nil }
}
