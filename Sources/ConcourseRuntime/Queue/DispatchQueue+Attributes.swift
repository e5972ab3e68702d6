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

  /// How often a queue drains an autorelease pool; without effect where there is no Objective-C.
  public enum AutoreleaseFrequency: Sendable {
    /// As the target does it.
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
