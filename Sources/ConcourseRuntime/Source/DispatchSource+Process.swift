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
    /// The process has made another by `fork`, `vfork`, `posix_spawn` or their like.
    public static let fork = ProcessEvent(rawValue: 0x4000_0000)
    /// The process has become another program by `exec`.
    public static let exec = ProcessEvent(rawValue: 0x2000_0000)
    /// A signal was delivered to the process. Linux tells nobody: a source cannot be made for it.
    public static let signal = ProcessEvent(rawValue: 0x0800_0000)
    /// All of them; more than Linux can observe, so intersect it with `observable`.
    public static let all: ProcessEvent = [.exit, .fork, .exec, .signal]

    /// What can be observed here and now: always `.exit`; `.fork` and `.exec` too where the kernel grants
    /// its process events to this process, mostly to privileged ones outside of containers.
    ///
    /// Asking takes some system calls. Code for several systems intersects its mask with this.
    public static var observable: ProcessEvent {
      ProcessConnector.isPermitted ? [.exit, .fork, .exec] : .exit
    }

    static let names: [(UInt, String)] = [
      (exit.rawValue, "exit"), (fork.rawValue, "fork"), (exec.rawValue, "exec"), (signal.rawValue, "signal"),
    ]
  }

  /// Creates a source that calls its handler when something happens to a process.
  ///
  /// The exit is reported once, when the process has ended and, if it is a child of this one, can be
  /// reaped; also if that was so before. A process that does not exist counts as one that has ended. The
  /// source never reaps. The process is held from this call on: should its number be used again later,
  /// the source does not mistake the new process for it. For other processes than children, the end is
  /// that of their last thread.
  ///
  /// `.fork` and `.exec` are reported for any process, where the kernel permits it; under a flood of
  /// processes some announcements can be lost, and then both are reported to be on the safe side.
  ///
  /// Where the kernel has no descriptor for a process (before 5.3, or none left), it is looked at up to
  /// fifty times a second instead.
  ///
  /// Traps on an identifier below 1, on an empty mask, and on events that cannot be observed here, see
  /// `ProcessEvent.observable`.
  /// - Parameters:
  ///   - identifier: the process.
  ///   - eventMask: what to report.
  ///   - queue: where the handlers run; nil means the default global queue.
  /// Matching C function: `dispatch_source_create` with `DISPATCH_SOURCE_TYPE_PROC`.
  public class func makeProcessSource(
    identifier: pid_t, eventMask: ProcessEvent, queue: DispatchQueue? = nil
  ) -> any DispatchSourceProcess {
    makeProcess(identifier, eventMask, queue).orTrap()
  }

  /// As `makeProcessSource`, for callers that must not die of a refusal.
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
  /// The process. Matching C function: `dispatch_source_get_handle`.
  var handle: pid_t { get }

  /// The events asked for; empty after cancellation. Matching C function: `dispatch_source_get_mask`.
  var mask: DispatchSource.ProcessEvent { get }

  /// What has happened since the last call of the event handler; defined only inside it. Matching C
  /// function: `dispatch_source_get_data`.
  var data: DispatchSource.ProcessEvent { get }
}

extension DispatchSourceProcess {
  /// `handle`, see `DispatchSourceFileSystemObject._fileDescriptor`. Disfavored, so that an `Int32` asked of the class
  /// is not ambiguous: the two are the same number.
  @_disfavoredOverload @_implements(DispatchSourceProcess,handle)
  public var _processIdentifier: pid_t { pid_t(truncatingIfNeeded: source.handle) }

  /// See the requirement.
  public var mask: DispatchSource.ProcessEvent { .init(rawValue: source.mask) }

  /// See the requirement.
  public var data: DispatchSource.ProcessEvent { .init(rawValue: source.data) }
}

extension DispatchSource: DispatchSourceProcess {}

/// Listens to one process: its exit through `ProcessExit`, its forks and execs through `ProcessConnector`.
final class ProcessBackend {
  private let identifier: pid_t
  private let mask: DispatchSource.ProcessEvent
  private let exit: ProcessExit?
  private let lock = Lock()
  // GUARDED BY `lock`.
  private var source: SourceCore?
  private var holdsConnector: Bool

  private static let announced: DispatchSource.ProcessEvent = [.fork, .exec]

  /// A backend, or why there can be none.
  static func make(
    identifier: pid_t, mask: DispatchSource.ProcessEvent
  ) -> Result<ProcessBackend, SourceRefusal> {
    let factory = "makeProcessSource(identifier: \(identifier))"
    guard identifier > 0 else {
      return .failure(SourceRefusal("\(factory): a process identifier is above 0"))
    }
    // Asked only when needed: it takes some system calls.
    var connector = Int32(0)
    if !mask.isDisjoint(with: announced) { connector = ProcessConnector.shared.acquire() }
    let observable: DispatchSource.ProcessEvent = connector == 0 ? [.exit, .fork, .exec] : .exit
    let refusal = SourceMask.refusal(
      of: mask.rawValue, observable: observable.rawValue, names: DispatchSource.ProcessEvent.names,
      in: factory,
      because: connector == 0
        ? "Linux tells no process of the signals of another"
        : "the kernel refuses its process events to this process (errno \(connector))")
    if let refusal {
      if connector == 0 && !mask.isDisjoint(with: announced) { ProcessConnector.shared.release() }
      return .failure(refusal)
    }
    return .success(ProcessBackend(identifier: identifier, mask: mask))
  }

  /// Call with the connector acquired, if the mask needs it.
  private init(identifier: pid_t, mask: DispatchSource.ProcessEvent) {
    self.identifier = identifier
    self.mask = mask
    exit = mask.contains(.exit) ? ProcessExit(identifier: identifier) : nil
    holdsConnector = !mask.isDisjoint(with: Self.announced)
  }

  deinit {
    // Never installed, hence never removed.
    if holdsConnector { ProcessConnector.shared.release() }
  }
}

extension ProcessBackend: SourceBackend {
  func install(for source: SourceCore) {
    lock.withLock { self.source = source }
    if lock.withLock({ holdsConnector }) { ProcessConnector.shared.add(self, for: identifier) }
    // Until `end`, which lets go of the closure.
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
    // Released outside the lock.
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

// SAFETY: the guards above; the rest is constant.
extension ProcessBackend: @unchecked Sendable {}
