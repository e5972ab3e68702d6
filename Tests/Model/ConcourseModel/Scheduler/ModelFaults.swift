/// Bugs planted under the engine, to show that the model finds them. A scenario arms one in its body; each execution
/// starts with none.
enum ModelFaults {
  // SAFETY: all of these are accessed only on the exploring thread, and explorations run one at a time.
  /// `Futex.wait` sleeps without comparing the word, as if the check and the sleep were two steps.
  nonisolated(unsafe) static var futexSleepsRegardless = false

  // SAFETY: as above.
  /// `Futex.wake` has no effect.
  nonisolated(unsafe) static var dropsWakes = false

  // SAFETY: as above.
  /// `SystemThread.spawn` fails, as if the system had no threads left.
  nonisolated(unsafe) static var refusesThreads = false

  // SAFETY: as above.
  /// Loads in functions of this name return what the coroutine last saw in the word. This moves the re-check before
  /// sleeping above the announcement, as a missing fence would.
  nonisolated(unsafe) static var staleLoadsIn: String?

  // SAFETY: as above.
  /// Interruptions of a worker that waits for events are lost.
  nonisolated(unsafe) static var dropsInterruptions = false

  // SAFETY: as above.
  /// What happens at every n-th entry never happens, if this names the number n (`Processor.number`).
  nonisolated(unsafe) static var never: String?

  static func disarm() {
    dropsInterruptions = false
    futexSleepsRegardless = false
    dropsWakes = false
    refusesThreads = false
    never = nil
    staleLoadsIn = nil
  }
}
