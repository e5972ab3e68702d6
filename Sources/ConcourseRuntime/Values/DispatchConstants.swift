// The C names that Apple's module shows through `import Dispatch`. Their spelling is C's, so the
// linter's rule on names is off in this file.
//
// The constants are computed so that a client module folds them into its own code instead of
// reading a global.
// swift-format-ignore-file: TypeNamesShouldBeCapitalized, AlwaysUseLowerCamelCase

/// An instant in the C encoding: 0 is now, all ones is forever, a value with the top bit clear
/// counts nanoseconds of uptime, and a value with the top bit set is a wall-clock instant, stored
/// as the negated count of nanoseconds since 1970.
///
/// Matches C's `dispatch_time_t`.
public typealias dispatch_time_t = UInt64

/// Nanoseconds in one second.
@inlinable public var NSEC_PER_SEC: UInt64 { 1_000_000_000 }

/// Nanoseconds in one millisecond.
@inlinable public var NSEC_PER_MSEC: UInt64 { 1_000_000 }

/// Nanoseconds in one microsecond.
@inlinable public var NSEC_PER_USEC: UInt64 { 1_000 }

/// Microseconds in one second.
@inlinable public var USEC_PER_SEC: UInt64 { 1_000_000 }

/// Milliseconds in one second.
@inlinable public var MSEC_PER_SEC: UInt64 { 1_000 }

/// A quality-of-service class as C has it; `DispatchQoS.QoSClass` in Swift.
@frozen
public struct qos_class_t: RawRepresentable, Hashable, Sendable {
  /// The number.
  public var rawValue: UInt32

  /// The class with this number, which need not be one of those below.
  @inlinable
  public init(rawValue: UInt32) { self.rawValue = rawValue }

  /// The class with this number, which need not be one of those below.
  @inlinable
  public init(_ rawValue: UInt32) { self.rawValue = rawValue }
}

/// Work that keeps an interface responsive.
@inlinable public var QOS_CLASS_USER_INTERACTIVE: qos_class_t { qos_class_t(0x21) }

/// Work the user asked for and waits for.
@inlinable public var QOS_CLASS_USER_INITIATED: qos_class_t { qos_class_t(0x19) }

/// Work about whose importance nothing is known.
@inlinable public var QOS_CLASS_DEFAULT: qos_class_t { qos_class_t(0x15) }

/// Long work whose progress the user may watch.
@inlinable public var QOS_CLASS_UTILITY: qos_class_t { qos_class_t(0x11) }

/// Work the user does not see.
@inlinable public var QOS_CLASS_BACKGROUND: qos_class_t { qos_class_t(0x09) }

/// No class given.
@inlinable public var QOS_CLASS_UNSPECIFIED: qos_class_t { qos_class_t(0) }
