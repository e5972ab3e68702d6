public import typealias Glibc.pid_t

extension DispatchSource {
  /// What a process source can report. Matching C constants: `DISPATCH_PROC_EXIT` and so on.
  public struct ProcessEvent: OptionSet, RawRepresentable, Sendable {
    /// The bits, as in C.
    public let rawValue: UInt

    /// The events with these bits.
    public init(rawValue: UInt) { self.rawValue = rawValue }

    /// The process has ended; if it is a child, it can be reaped now.
    public static let exit = ProcessEvent(rawValue: 0x8000_0000)
    /// The process has created a child by `fork`, `vfork`, `posix_spawn` or similar.
    public static let fork = ProcessEvent(rawValue: 0x4000_0000)
    /// The process has replaced its program by `exec`.
    public static let exec = ProcessEvent(rawValue: 0x2000_0000)
    /// A signal was delivered to the process. Linux does not report this: creating a source for it traps.
    public static let signal = ProcessEvent(rawValue: 0x0800_0000)
    /// All events. Linux cannot observe all of them, so intersect this with `observable`.
    public static let all: ProcessEvent = [.exit, .fork, .exec, .signal]

    /// The events that this process can observe now: always `.exit`; `.fork` and `.exec` if the kernel grants it
    /// process events, which it mostly does to privileged processes outside containers.
    ///
    /// Reading the property takes some system calls. Portable code intersects its mask with it.
    public static var observable: ProcessEvent {
      ProcessConnector.isPermitted ? [.exit, .fork, .exec] : .exit
    }

    static let names: [(UInt, String)] = [
      (exit.rawValue, "exit"), (fork.rawValue, "fork"), (exec.rawValue, "exec"), (signal.rawValue, "signal"),
    ]
  }

  /// Creates a source that calls its handler when something happens to a process.
  ///
  /// The exit is reported once, when the process has ended and, if it is a child of this one, can be reaped. An exit
  /// before this call is reported too, and a process that does not exist counts as one that has ended. The source
  /// never reaps. The source holds the process from this call on, so a later process with the same number is not
  /// mistaken for it. The end of a process that is not a child is the end of its last thread.
  ///
  /// `.fork` and `.exec` are reported for any process, if the kernel permits it. Under a flood of processes the
  /// kernel may drop announcements; the source then reports both events.
  ///
  /// If the kernel grants no descriptor for the process (before 5.3, or none left), the source polls the
  /// process: first after 1 ms, then less and less often, down to fifty times a second.
  ///
  /// Traps on an identifier below 1, on an empty mask, and on events that cannot be observed, see
  /// `ProcessEvent.observable`.
  /// - Parameters:
  ///   - identifier: the process.
  ///   - eventMask: the events to report.
  ///   - queue: the queue on which the handlers run; nil means the default global queue.
  /// Matching C function: `dispatch_source_create` with `DISPATCH_SOURCE_TYPE_PROC`.
  public class func makeProcessSource(
    identifier: pid_t, eventMask: ProcessEvent, queue: DispatchQueue? = nil
  ) -> any DispatchSourceProcess {
    makeProcess(identifier, eventMask, queue).orTrap()
  }

  /// As `makeProcessSource`, but returns a refusal instead of trapping.
  static func makeProcess(
    _ identifier: pid_t, _ mask: ProcessEvent, _ queue: DispatchQueue?
  ) -> Result<DispatchSource, SourceRefusal> {
    ProcessBackend.make(identifier: identifier, mask: mask).map { backend in
      DispatchSource(
        SourceCore(
          kind: .process, handle: UInt(identifier), mask: mask.rawValue, merging: .or, target: queue,
          backend: backend))
    }
  }
}

/// A source that reports what happens to a process.
public protocol DispatchSourceProcess: DispatchSourceProtocol {
  /// The observed process. Matching C function: `dispatch_source_get_handle`.
  var handle: pid_t { get }

  /// The requested events; empty after cancellation. Matching C function: `dispatch_source_get_mask`.
  var mask: DispatchSource.ProcessEvent { get }

  /// The events since the last call of the event handler; defined only inside the handler.
  /// Matching C function: `dispatch_source_get_data`.
  var data: DispatchSource.ProcessEvent { get }
}

extension DispatchSourceProcess {
  /// Implements `handle`, see `DispatchSourceFileSystemObject._fileDescriptor`. Disfavored, so that reading an
  /// `Int32` handle of the class is not ambiguous: both members return the same number.
  @_disfavoredOverload @_implements(DispatchSourceProcess,handle)
  public var _processIdentifier: pid_t { pid_t(truncatingIfNeeded: source.handle) }

  /// See the requirement.
  public var mask: DispatchSource.ProcessEvent { .init(rawValue: source.mask) }

  /// See the requirement.
  public var data: DispatchSource.ProcessEvent { .init(rawValue: source.data) }
}

extension DispatchSource: DispatchSourceProcess {}

/// Observes one process: its exit through `ProcessExit`, its forks and execs through `ProcessConnector`.
final class ProcessBackend {
  private let identifier: pid_t
  private let mask: DispatchSource.ProcessEvent
  private let exit: ProcessExit?
  private let lock = Lock(.processBackend)
  // GUARDED BY `lock`.
  private var source: SourceCore?
  private var holdsConnector: Bool

  private static let announced: DispatchSource.ProcessEvent = [.fork, .exec]

  /// Makes a backend, or says why the arguments or the kernel do not allow one.
  static func make(
    identifier: pid_t, mask: DispatchSource.ProcessEvent
  ) -> Result<ProcessBackend, SourceRefusal> {
    let factory = "makeProcessSource(identifier: \(identifier))"
    guard identifier > 0 else {
      return .failure(SourceRefusal(514, "\(factory): a process identifier must be positive"))
    }
    // Acquire only when needed: it takes some system calls.
    var connector = Int32(0)
    if !mask.isDisjoint(with: announced) { connector = ProcessConnector.shared.acquire() }
    let observable: DispatchSource.ProcessEvent = connector == 0 ? [.exit, .fork, .exec] : .exit
    let refusal = SourceMask.refusal(
      of: mask.rawValue, observable: observable.rawValue, names: DispatchSource.ProcessEvent.names,
      in: factory,
      because: connector == 0
        ? "Linux does not report the signals of another process"
        : "the kernel refuses its process events to this process (errno \(connector))")
    if let refusal {
      if connector == 0 && !mask.isDisjoint(with: announced) { ProcessConnector.shared.release() }
      return .failure(refusal)
    }
    return .success(ProcessBackend(identifier: identifier, mask: mask))
  }

  /// Call with the connector acquired if the mask needs it.
  private init(identifier: pid_t, mask: DispatchSource.ProcessEvent) {
    self.identifier = identifier
    self.mask = mask
    exit = mask.contains(.exit) ? ProcessExit(identifier: identifier) : nil
    holdsConnector = !mask.isDisjoint(with: Self.announced)
  }

  deinit {
    // The backend was never installed, and so never removed.
    if holdsConnector { ProcessConnector.shared.release() }
  }
}

extension ProcessBackend: SourceBackend {
  func install(for source: SourceCore) {
    lock.withLock { self.source = source }
    if lock.withLock({ holdsConnector }) { ProcessConnector.shared.add(self, for: identifier) }
    // The closure keeps this object alive until `end` releases it.
    exit?.begin { [self] in processChanged(.exit) }
  }

  func remove() {
    exit?.end()
    let held = lock.withLock { () -> Bool in
      defer { holdsConnector = false }
      return holdsConnector
    }
    if held {
      ProcessConnector.shared.remove(self, for: identifier)
      ProcessConnector.shared.release()
    }
    // Release the source outside the lock.
    let last = lock.withLock { () -> SourceCore? in
      defer { source = nil }
      return source
    }
    withExtendedLifetime(last) {}
  }
}

extension ProcessBackend: ProcessListener {
  func processChanged(_ events: DispatchSource.ProcessEvent) {
    let wanted = events.intersection(mask)
    guard !wanted.isEmpty, let source = lock.withLock({ source }) else { return }
    source.raise(wanted.rawValue)
  }
}

// SAFETY: mutable fields are guarded as noted above; the rest is constant.
extension ProcessBackend: @unchecked Sendable {}
