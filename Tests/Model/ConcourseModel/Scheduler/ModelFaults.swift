/// Bugs to put under the engine on purpose, to show that the model would catch them. A scenario arms
/// one inside its body; every execution begins with none.
enum ModelFaults {
  // SAFETY: all of these are read and written on the exploring thread only, and explorations run one
  // at a time.
  /// `Futex.wait` falls asleep without comparing the word, as if the check and the sleep were two steps.
  nonisolated(unsafe) static var futexSleepsRegardless = false

  // SAFETY: as above.
  /// `Futex.wake` wakes nobody.
  nonisolated(unsafe) static var dropsWakes = false

  // SAFETY: as above.
  /// `SystemThread.spawn` fails, as when the system has no thread left.
  nonisolated(unsafe) static var refusesThreads = false

  // SAFETY: as above.
  /// Loads in functions of this name return what the coroutine saw in the word before, as if they had
  /// been made earlier: the re-check before sleeping is as good as gone, or moved above its
  /// announcement, as it would without a fence.
  nonisolated(unsafe) static var staleLoadsIn: String?

  // SAFETY: as above.
  /// A worker that waits for events is not called away from them.
  nonisolated(unsafe) static var dropsInterruptions = false

  // SAFETY: as above.
  /// A worker prefers the most urgent root every time.
  nonisolated(unsafe) static var rootsNeverGoFirst = false

  // SAFETY: as above.
  /// A worker prefers the queue that it keeps every time.
  nonisolated(unsafe) static var slotAlwaysGoesFirst = false

  static func disarm() {
    dropsInterruptions = false
    futexSleepsRegardless = false
    dropsWakes = false
    refusesThreads = false
    rootsNeverGoFirst = false
    slotAlwaysGoesFirst = false
    staleLoadsIn = nil
  }
}
