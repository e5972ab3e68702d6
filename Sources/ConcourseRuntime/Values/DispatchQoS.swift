// How important work is: a class, and a place within the class. The static values are computed so
// that a client module folds them instead of reading globals.

/// A quality-of-service class with a relative priority within it.
@frozen
public struct DispatchQoS: Equatable, Sendable {
  /// The class.
  public let qosClass: DispatchQoS.QoSClass

  /// The place within the class: 0 is the class's own, -15 the least.
  public let relativePriority: Int

  /// Work the user does not see: prefetching, maintenance, backup.
  @inlinable
  public static var background: DispatchQoS { DispatchQoS(unchecked: .background) }

  /// Long work whose progress the user may watch.
  @inlinable
  public static var utility: DispatchQoS { DispatchQoS(unchecked: .utility) }

  /// Work about whose importance nothing is known.
  @inlinable
  public static var `default`: DispatchQoS { DispatchQoS(unchecked: .default) }

  /// Work the user asked for and waits for.
  @inlinable
  public static var userInitiated: DispatchQoS { DispatchQoS(unchecked: .userInitiated) }

  /// Work that keeps an interface responsive.
  @inlinable
  public static var userInteractive: DispatchQoS { DispatchQoS(unchecked: .userInteractive) }

  /// No class given: the queue, the target or the submitter decides.
  @inlinable
  public static var unspecified: DispatchQoS { DispatchQoS(unchecked: .unspecified) }

  /// Makes a quality of service.
  ///
  /// Traps if the relative priority is outside -15...0. Matches the arguments of C's
  /// `dispatch_queue_attr_make_with_qos_class`, which answers null there.
  ///
  /// - Parameters:
  ///   - qosClass: The class.
  ///   - relativePriority: The place within the class, from -15 to 0.
  @inlinable
  public init(qosClass: DispatchQoS.QoSClass, relativePriority: Int) {
    if !(-15...0).contains(relativePriority) {
      Self.trap(relativePriority: relativePriority, in: qosClass)
    }
    self.qosClass = qosClass
    self.relativePriority = relativePriority
  }

  /// Makes a class's own quality of service.
  @inlinable
  init(unchecked qosClass: DispatchQoS.QoSClass) {
    self.qosClass = qosClass
    self.relativePriority = 0
  }

  @usableFromInline
  static func trap(relativePriority: Int, in qosClass: DispatchQoS.QoSClass) -> Never {
    Trap.clientBug(
      "DispatchQoS(qosClass: .\(qosClass), relativePriority: \(relativePriority)): "
        + "a relative priority lies between -15 and 0")
  }
}

extension DispatchQoS {
  /// A class of importance. The raw values are C's.
  @frozen
  public enum QoSClass: Sendable {
    /// Work the user does not see.
    case background

    /// Long work whose progress the user may watch.
    case utility

    /// Work about whose importance nothing is known.
    case `default`

    /// Work the user asked for and waits for.
    case userInitiated

    /// Work that keeps an interface responsive.
    case userInteractive

    /// No class given.
    case unspecified
  }
}

extension DispatchQoS.QoSClass: RawRepresentable {
  /// The class that C knows by this value, or nil.
  @inlinable
  public init?(rawValue: qos_class_t) {
    switch rawValue {
    case QOS_CLASS_BACKGROUND: self = .background
    case QOS_CLASS_UTILITY: self = .utility
    case QOS_CLASS_DEFAULT: self = .default
    case QOS_CLASS_USER_INITIATED: self = .userInitiated
    case QOS_CLASS_USER_INTERACTIVE: self = .userInteractive
    case QOS_CLASS_UNSPECIFIED: self = .unspecified
    default: return nil
    }
  }

  /// C's value of the class.
  @inlinable
  public var rawValue: qos_class_t {
    switch self {
    case .background: QOS_CLASS_BACKGROUND
    case .utility: QOS_CLASS_UTILITY
    case .default: QOS_CLASS_DEFAULT
    case .userInitiated: QOS_CLASS_USER_INITIATED
    case .userInteractive: QOS_CLASS_USER_INTERACTIVE
    case .unspecified: QOS_CLASS_UNSPECIFIED
    }
  }
}

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

/// A quality-of-service class as the engine orders it: higher raw value, earlier service.
@usableFromInline
enum QoSLevel: UInt8, Comparable {
  case unspecified = 0
  case background = 1
  case utility = 2
  case `default` = 3
  case userInitiated = 4
  case userInteractive = 5

  @usableFromInline
  static func < (a: QoSLevel, b: QoSLevel) -> Bool { a.rawValue < b.rawValue }

  init(_ qosClass: DispatchQoS.QoSClass) {
    switch qosClass {
    case .background: self = .background
    case .utility: self = .utility
    case .default: self = .default
    case .userInitiated: self = .userInitiated
    case .userInteractive: self = .userInteractive
    case .unspecified: self = .unspecified
    }
  }

  var qosClass: DispatchQoS.QoSClass {
    switch self {
    case .background: .background
    case .utility: .utility
    case .default: .default
    case .userInitiated: .userInitiated
    case .userInteractive: .userInteractive
    case .unspecified: .unspecified
    }
  }

  /// The level whose root queue serves work of this level.
  var served: QoSLevel { self == .unspecified ? .default : self }

  /// What an asynchronous submission inherits from a submitter at this level: user-interactive is
  /// reserved for the thread that talks to the user and travels one class lower.
  var propagated: QoSLevel { self == .userInteractive ? .userInitiated : self }
}

extension QoSLevel: AtomicRepresentable {}
