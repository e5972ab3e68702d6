// SAFETY: restates the conformance of DispatchQueue; nothing is added.
/// What serial queues and workloops have in common: they run actors. Only those two are subclasses.
///
/// Matching C type: `dispatch_queue_serial_executor_t`.
public class _DispatchSerialExecutorQueue: DispatchQueue, @unchecked Sendable {}

// SAFETY: restates the conformance of DispatchQueue; nothing is added.
/// A serial queue as a type of its own: what it guarantees is known at compile time.
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
