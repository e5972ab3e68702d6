// The importance of work: a class, and a priority within it. The static values are computed, so that a client module
// folds them instead of reading globals.

/// A quality-of-service class with a relative priority within it.
@frozen
public struct DispatchQoS: Equatable, Sendable {
  /// The class.
  public let qosClass: DispatchQoS.QoSClass

  /// The priority within the class: 0 is the class itself, -15 the lowest.
  public let relativePriority: Int

  /// Work that the user does not see: prefetching, maintenance, backup.
  @inlinable
  public static var background: DispatchQoS { DispatchQoS(unchecked: .background) }

  /// Long-running work whose progress the user may follow.
  @inlinable
  public static var utility: DispatchQoS { DispatchQoS(unchecked: .utility) }

  /// Work of unknown importance.
  @inlinable
  public static var `default`: DispatchQoS { DispatchQoS(unchecked: .default) }

  /// Work that the user has requested and waits for.
  @inlinable
  public static var userInitiated: DispatchQoS { DispatchQoS(unchecked: .userInitiated) }

  /// Work that keeps an interface responsive.
  @inlinable
  public static var userInteractive: DispatchQoS { DispatchQoS(unchecked: .userInteractive) }

  /// No class specified: the queue, the target or the submitter decides.
  @inlinable
  public static var unspecified: DispatchQoS { DispatchQoS(unchecked: .unspecified) }

  /// Makes a quality of service.
  ///
  /// Traps if the relative priority is outside -15...0, where the matching C function,
  /// `dispatch_queue_attr_make_with_qos_class`, returns NULL.
  ///
  /// - Parameters:
  ///   - qosClass: The class.
  ///   - relativePriority: The priority within the class, from -15 to 0.
  @inlinable
  public init(qosClass: DispatchQoS.QoSClass, relativePriority: Int) {
    if !(-15...0).contains(relativePriority) {
      Self.trap(relativePriority: relativePriority, in: qosClass)
    }
    self.qosClass = qosClass
    self.relativePriority = relativePriority
  }

  /// Makes a quality of service of relative priority 0.
  @inlinable
  init(unchecked qosClass: DispatchQoS.QoSClass) {
    self.qosClass = qosClass
    self.relativePriority = 0
  }

  @usableFromInline
  static func trap(relativePriority: Int, in qosClass: DispatchQoS.QoSClass) -> Never {
    Trap.clientBug(
      114,
      "DispatchQoS(qosClass: .\(qosClass), relativePriority: \(relativePriority)): "
        + "a relative priority lies between -15 and 0")
  }
}

extension DispatchQoS {
  /// A quality-of-service class. The raw values are those of C.
  @frozen
  public enum QoSClass: Sendable {
    /// Work that the user does not see.
    case background

    /// Long-running work whose progress the user may follow.
    case utility

    /// Work of unknown importance.
    case `default`

    /// Work that the user has requested and waits for.
    case userInitiated

    /// Work that keeps an interface responsive.
    case userInteractive

    /// No class specified.
    case unspecified
  }
}

extension DispatchQoS.QoSClass: RawRepresentable {
  /// The class with this value in C, or nil.
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

  /// The value of the class in C.
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

/// Options of a work item or of one submission. Undefined bits are not allowed.
@frozen
public struct DispatchWorkItemFlags: OptionSet, Sendable {
  /// The bits; those of C's `dispatch_block_flags_t`.
  public let rawValue: UInt

  /// Makes a set from its bits.
  ///
  /// - Parameter rawValue: The bits. The set keeps undefined bits; the functions that take the set reject them.
  @inlinable
  public init(rawValue: UInt) {
    self.rawValue = rawValue
  }

  /// On a concurrent queue that the program created, the item runs alone, after all earlier items and before all
  /// later ones. No effect on other queues, or when the item is performed directly.
  @inlinable
  public static var barrier: DispatchWorkItemFlags { DispatchWorkItemFlags(rawValue: 0x1) }

  /// The item inherits neither the quality of service nor the context of its submitter.
  @inlinable
  public static var detached: DispatchWorkItemFlags { DispatchWorkItemFlags(rawValue: 0x2) }

  /// The item captures the context at its creation instead of at its submission.
  @inlinable
  public static var assignCurrentContext: DispatchWorkItemFlags {
    DispatchWorkItemFlags(rawValue: 0x4)
  }

  /// The item carries no quality of service.
  @inlinable
  public static var noQoS: DispatchWorkItemFlags { DispatchWorkItemFlags(rawValue: 0x8) }

  /// The queue's quality of service takes precedence over the item's, unless that would lower it. The default for
  /// asynchronous submission.
  @inlinable
  public static var inheritQoS: DispatchWorkItemFlags { DispatchWorkItemFlags(rawValue: 0x10) }

  /// The item's quality of service takes precedence over the queue's, unless that would lower it. The default for
  /// synchronous execution. Wins over `inheritQoS` if both are given.
  @inlinable
  public static var enforceQoS: DispatchWorkItemFlags { DispatchWorkItemFlags(rawValue: 0x20) }
}

/// A quality-of-service class as the engine orders it: a higher raw value is served first.
@usableFromInline
package enum QoSLevel: UInt8, Comparable {
  case unspecified = 0
  case background = 1
  case utility = 2
  case `default` = 3
  case userInitiated = 4
  case userInteractive = 5

  static var count: Int { Int(userInteractive.rawValue) + 1 }

  @usableFromInline
  package static func < (a: QoSLevel, b: QoSLevel) -> Bool { a.rawValue < b.rawValue }

  package init(_ qosClass: DispatchQoS.QoSClass) {
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

  /// The level that an asynchronous submission inherits from a submitter at this level. User-interactive is reserved
  /// for the thread that serves the user interface, and passes on as user-initiated.
  var propagated: QoSLevel { self == .userInteractive ? .userInitiated : self }
}

// The conformance that the compiler makes checks each loaded value, and branches on it to find its case.
extension QoSLevel: AtomicRepresentable {
  @usableFromInline package typealias AtomicRepresentation = UInt8.AtomicRepresentation

  @inlinable @inline(__always)
  package static func encodeAtomicRepresentation(_ level: consuming QoSLevel) -> AtomicRepresentation {
    UInt8.encodeAtomicRepresentation(level.rawValue)
  }

  @inlinable @inline(__always)
  package static func decodeAtomicRepresentation(_ byte: consuming AtomicRepresentation) -> QoSLevel {
    // SAFETY: an atomic level has only what `encodeAtomicRepresentation` made of a case, and a case is its raw value.
    unsafeBitCast(UInt8.decodeAtomicRepresentation(byte), to: QoSLevel.self)
  }
}
