extension DispatchQueue {
  /// Properties of a queue that are fixed at creation.
  public struct Attributes: OptionSet, Sendable {
    /// The bits.
    public let rawValue: UInt64

    /// A set from its bits; unknown bits are ignored.
    public init(rawValue: UInt64) { self.rawValue = rawValue }

    /// Items may overlap. Matching C constant: `DISPATCH_QUEUE_CONCURRENT`.
    public static let concurrent = Attributes(rawValue: 1 << 1)
    /// The queue holds its work until `activate()` is called. Matching C function:
    /// `dispatch_queue_attr_make_initially_inactive`.
    public static let initiallyInactive = Attributes(rawValue: 1 << 2)
  }

  /// How often a queue drains an autorelease pool; without effect, since there is no Objective-C on Linux.
  public enum AutoreleaseFrequency: Sendable {
    /// As the target does.
    case inherit
    /// Around each item.
    case workItem
    /// Never.
    case never
  }

  /// The legacy priorities of global queues.
  public enum GlobalQueuePriority: Sendable {
    /// Served as user-initiated.
    case high
    /// Served as default.
    case `default`
    /// Served as utility.
    case low
    /// Served as background.
    case background
  }
}

// SAFETY: restates the conformance of DispatchQueue; nothing is added.
/// The common class of serial queues and workloops, which run actors. Only these two are subclasses.
///
/// Matching C type: `dispatch_queue_serial_executor_t`.
public class _DispatchSerialExecutorQueue: DispatchQueue, @unchecked Sendable {}

// SAFETY: restates the conformance of DispatchQueue; nothing is added.
/// A serial queue as a type of its own, so that the compiler knows that it is serial.
///
/// Matching C type: `dispatch_queue_serial_t`.
public final class DispatchSerialQueue: _DispatchSerialExecutorQueue, @unchecked Sendable {
  /// Properties fixed at creation.
  public struct Attributes: OptionSet, Sendable {
    /// The bits.
    public let rawValue: UInt64
    /// A set from its bits.
    public init(rawValue: UInt64) { self.rawValue = rawValue }
    /// The queue holds its work until `activate()` is called.
    public static let initiallyInactive = Attributes(
      rawValue: DispatchQueue.Attributes.initiallyInactive.rawValue)
  }

  /// Creates a serial queue; parameters as for `DispatchQueue`. Matching C function:
  /// `dispatch_queue_create_with_target`.
  public init(
    label: String, qos: DispatchQoS = .unspecified, attributes: Attributes = [],
    autoreleaseFrequency: AutoreleaseFrequency = .workItem, target: DispatchQueue? = nil
  ) {
    super.init(
      kind: .serial, label: QueueName(label), qos: qos,
      attributes: attributes.contains(.initiallyInactive) ? .initiallyInactive : [], target: target)
  }
}

// SAFETY: restates the conformance of DispatchQueue; nothing is added.
/// A concurrent queue as a type of its own. Matching C type: `dispatch_queue_concurrent_t`.
public final class DispatchConcurrentQueue: DispatchQueue, @unchecked Sendable {
  /// Properties fixed at creation.
  public struct Attributes: OptionSet, Sendable {
    /// The bits.
    public let rawValue: UInt64
    /// A set from its bits.
    public init(rawValue: UInt64) { self.rawValue = rawValue }
    /// The queue holds its work until `activate()` is called.
    public static let initiallyInactive = Attributes(
      rawValue: DispatchQueue.Attributes.initiallyInactive.rawValue)
  }

  /// Creates a concurrent queue; parameters as for `DispatchQueue`. Matching C function:
  /// `dispatch_queue_create_with_target`.
  public init(
    label: String, qos: DispatchQoS = .unspecified, attributes: Attributes = [],
    autoreleaseFrequency: AutoreleaseFrequency = .workItem, target: DispatchQueue? = nil
  ) {
    super.init(
      kind: .concurrent, label: QueueName(label), qos: qos,
      attributes: attributes.contains(.initiallyInactive) ? .initiallyInactive : [], target: target)
  }
}
