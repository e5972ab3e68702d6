extension DispatchSource {
  /// What a memory pressure source can report. Matching C constants: `DISPATCH_MEMORYPRESSURE_NORMAL` and
  /// so on.
  public struct MemoryPressureEvent: OptionSet, RawRepresentable, Sendable {
    /// The bits, as in C.
    public let rawValue: UInt

    /// The events with these bits.
    public init(rawValue: UInt) { self.rawValue = rawValue }

    /// There is enough memory again.
    public static let normal = MemoryPressureEvent(rawValue: 0x1)
    /// Memory runs short: give back what can easily be made again.
    public static let warning = MemoryPressureEvent(rawValue: 0x2)
    /// Memory is so short that the kernel may soon end processes: give back what can be missed.
    public static let critical = MemoryPressureEvent(rawValue: 0x4)
    /// All of them.
    public static let all: MemoryPressureEvent = [.normal, .warning, .critical]

    /// What can be observed here: `.all`. Code for several systems intersects its mask with this.
    public static var observable: MemoryPressureEvent { .all }

    static let names: [(UInt, String)] = [
      (normal.rawValue, "normal"), (warning.rawValue, "warning"), (critical.rawValue, "critical"),
    ]
  }

  /// Creates a source that calls its handler when memory becomes short, shorter, or sufficient again.
  ///
  /// Changes are reported; the level is taken to be normal at first. `data` is the one level that has been
  /// reached last. It is that of the control group of this process if the kernel tells, else the machine's:
  ///
  /// - where the kernel reports stalls (PSI): a warning when tasks have waited for memory for 300 of
  ///   2,000 ms, critical when all did at once for 200; each ends 5 s after its last stall;
  /// - where it does not, memory is read every second: a warning when less than 10 % can be used without
  ///   swapping, or the control group had to give memory back; critical below 5 %, or when the group ran
  ///   out of it; they end at 15 % and 8 %.
  ///
  /// Traps on an empty mask, and on bits that have no meaning.
  /// - Parameters:
  ///   - eventMask: the levels to report.
  ///   - queue: where the handlers run; nil means the default global queue.
  /// Matching C function: `dispatch_source_create` with `DISPATCH_SOURCE_TYPE_MEMORYPRESSURE`.
  public class func makeMemoryPressureSource(
    eventMask: MemoryPressureEvent, queue: DispatchQueue? = nil
  ) -> any DispatchSourceMemoryPressure {
    makeMemoryPressure(eventMask, queue).orTrap()
  }

  /// As `makeMemoryPressureSource`, for callers that must not die of a refusal.
  static func makeMemoryPressure(
    _ mask: MemoryPressureEvent, _ queue: DispatchQueue?
  ) -> Result<DispatchSource, SourceRefusal> {
    MemoryPressureBackend.make(mask: mask).map { backend in
      DispatchSource(memoryPressure: backend, mask, queue)
    }
  }

  convenience init(
    memoryPressure backend: MemoryPressureBackend, _ mask: MemoryPressureEvent, _ queue: DispatchQueue?
  ) {
    // The last level counts: one that has passed needs no action any more.
    self.init(
      SourceCore(
        kind: .memoryPressure, handle: 0, mask: mask.rawValue, merging: .replace, target: queue,
        backend: backend))
  }
}

/// A source that reports how short memory is.
public protocol DispatchSourceMemoryPressure: DispatchSourceProtocol {
  /// The levels asked for; empty after cancellation. Matching C function: `dispatch_source_get_mask`.
  var mask: DispatchSource.MemoryPressureEvent { get }

  /// The level that was reached last; defined only inside the event handler. Matching C function:
  /// `dispatch_source_get_data`.
  var data: DispatchSource.MemoryPressureEvent { get }
}

extension DispatchSourceMemoryPressure {
  /// See the requirement.
  public var mask: DispatchSource.MemoryPressureEvent { .init(rawValue: source.mask) }

  /// See the requirement.
  public var data: DispatchSource.MemoryPressureEvent { .init(rawValue: source.data) }
}

extension DispatchSource: DispatchSourceMemoryPressure {}
