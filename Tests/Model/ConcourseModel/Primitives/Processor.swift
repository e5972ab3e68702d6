/// The machine under the engine, in the model.
enum Processor {
  /// "I cannot go on until somebody else does something": the coroutine runs again after another has
  /// changed a word, or when nobody else can run at all.
  static func pause() { Scheduler.current?.pause() }

  /// Lets somebody else run.
  static func yield() { Scheduler.current?.pause() }

  /// Processors that the model pretends to have; a scenario sets it before it touches the engine.
  // SAFETY: read and written on the exploring thread only; explorations run one at a time.
  nonisolated(unsafe) static var affinityCount = 2
}

extension Processor {
  /// The model has no environment variables: an execution must not depend on who runs it.
  static func environment(_ name: String) -> String? { nil }
}
