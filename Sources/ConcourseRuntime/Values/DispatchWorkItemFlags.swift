// How a work item is to be run.

/// Options of a work item or of one submission. Bits other than those named here are not allowed.
@frozen
public struct DispatchWorkItemFlags: OptionSet, Sendable {
  /// The bits; those of C's `dispatch_block_flags_t`.
  public let rawValue: UInt

  /// Makes a set from its bits.
  ///
  /// - Parameter rawValue: The bits. Unknown ones are kept, and refused by whoever is handed them.
  @inlinable
  public init(rawValue: UInt) {
    self.rawValue = rawValue
  }

  /// Submitted to a concurrent queue one created, the item runs alone, after every earlier item and
  /// before every later one. Means nothing on other queues and when the item is performed directly.
  @inlinable
  public static var barrier: DispatchWorkItemFlags { DispatchWorkItemFlags(rawValue: 0x1) }

  /// The item takes on neither the quality of service nor the context of its submitter.
  @inlinable
  public static var detached: DispatchWorkItemFlags { DispatchWorkItemFlags(rawValue: 0x2) }

  /// The item takes on the context of the moment of its creation instead of that of submission.
  @inlinable
  public static var assignCurrentContext: DispatchWorkItemFlags {
    DispatchWorkItemFlags(rawValue: 0x4)
  }

  /// The item carries no quality of service.
  @inlinable
  public static var noQoS: DispatchWorkItemFlags { DispatchWorkItemFlags(rawValue: 0x8) }

  /// The queue's quality of service goes before the item's, unless that lowers it. The rule for
  /// asynchronous submission.
  @inlinable
  public static var inheritQoS: DispatchWorkItemFlags { DispatchWorkItemFlags(rawValue: 0x10) }

  /// The item's quality of service goes before the queue's, unless that lowers it. The rule for
  /// synchronous execution, and the stronger of the two if both are given.
  @inlinable
  public static var enforceQoS: DispatchWorkItemFlags { DispatchWorkItemFlags(rawValue: 0x20) }
}
