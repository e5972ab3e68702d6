/// Bugs planted under the engine, to show that the model finds them. An exploration plants one with `fault:`, or a
/// scenario arms one in its body; each execution starts with no other.
enum ModelFaults {
  // SAFETY: all of these are accessed only on the exploring thread, and explorations run one at a time.
  /// The fault of the exploration.
  nonisolated(unsafe) static var planted: PlantedFault?

  // SAFETY: as above.
  /// `Futex.wait` sleeps without comparing the word, as if the check and the sleep were two steps.
  nonisolated(unsafe) static var futexSleepsRegardless = false

  // SAFETY: as above.
  /// `Futex.wake` has no effect.
  nonisolated(unsafe) static var dropsWakes = false

  // SAFETY: as above.
  /// `SystemThread.spawn` fails, as if the system had no threads left.
  nonisolated(unsafe) static var refusesThreads = false

  // SAFETY: as above.
  /// There is no descriptor for the event queue.
  nonisolated(unsafe) static var refusesDescriptors = false

  // SAFETY: as above.
  /// The kernel's timers are not set.
  nonisolated(unsafe) static var refusesTimers = false

  // SAFETY: as above.
  /// A fork is not noted, as if its handler did not run.
  nonisolated(unsafe) static var missesForks = false

  // SAFETY: as above.
  /// What happens at every n-th entry never happens, if this names the number n (`Tuning.value`).
  nonisolated(unsafe) static var never: String?

  static func disarm() {
    futexSleepsRegardless = false
    dropsWakes = false
    refusesThreads = false
    refusesDescriptors = false
    refusesTimers = false
    missesForks = false
    never = nil
  }

  /// Whether an operation of this function is to be changed in this way.
  static func plants(_ kind: PlantedFault.Kind, _ file: StaticString, _ function: StaticString) -> Bool {
    guard let planted else { return false }
    return planted.meets(kind, file, function)
  }
}

/// A fault in one function of the engine.
struct PlantedFault: Sendable, CustomStringConvertible {
  enum Kind: String, Sendable {
    /// Wake-ups have no effect.
    case noWake
    /// Stores and read-modify-writes have no effect, though the function goes on as if they had.
    case noWrite
    /// Operations are relaxed.
    case relaxed
    /// Loads return what the coroutine last saw in the word: a second look without effect, as if a fence were missing.
    case stale
  }

  let kind: Kind
  private let file: String
  private let function: String

  /// - Parameters:
  ///   - file: Its name without the extension.
  ///   - function: As `#function` says it, such as "wait(until:)"; nil for all of the file.
  init(_ kind: Kind, _ file: String, _ function: String? = nil) {
    self.kind = kind
    self.file = "/\(file).swift"
    self.function = function ?? ""
  }

  fileprivate func meets(_ kind: Kind, _ file: StaticString, _ function: StaticString) -> Bool {
    kind == self.kind && (self.function.isEmpty || function.description == self.function)
      && file.description.hasSuffix(self.file)
  }

  var description: String { "\(kind) in \(file) \(function)" }
}
