internal import Glibc

extension DispatchIO {
  /// How files are read and written that are not in the kernel's memory.
  public enum FileBackend: Sendable {
    /// Through the kernel's submission and completion rings, `io_uring`.
    case ring
    /// By pool threads that wait in the call.
    case threads
  }

  /// How channels of this process read and write files.
  ///
  /// Rings where the kernel, the sandbox and the descriptor limit allow them, else threads. The environment
  /// variable `CONCOURSE_IO`, read once, decides otherwise: `threads` uses no ring; `uring` sends every
  /// transfer through the ring as long as there is one; without it, or with `auto`, a read first takes what
  /// the kernel has in memory, and a write is made by a pool thread, both of which are faster that way.
  /// Asking may create the ring. May be called from any thread.
  public static var fileBackend: FileBackend {
    FilePolicy.current != .threads && CompletionRing.current != nil ? .ring : .threads
  }
}

/// What CONCOURSE_IO says.
enum FilePolicy: UInt8 {
  case automatic, ring, threads

  private static let inForce = Atomic<UInt8>(fromEnvironment.rawValue)

  /// The policy in force; tests set it.
  static var current: FilePolicy {
    // ORDERING: relaxed, both; a setting, which publishes nothing.
    get { FilePolicy(rawValue: inForce.load(ordering: .relaxed))! }
    set { inForce.store(newValue.rawValue, ordering: .relaxed) }
  }

  private static var fromEnvironment: FilePolicy {
    switch Processor.environment("CONCOURSE_IO") {
    case nil, "auto", "": return .automatic
    case "uring": return .ring
    case "threads": return .threads
    case let other?:
      Trap.warn("CONCOURSE_IO=\(other) is neither auto, uring nor threads; going on with auto")
      return .automatic
    }
  }
}
