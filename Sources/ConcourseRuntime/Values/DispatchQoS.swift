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
