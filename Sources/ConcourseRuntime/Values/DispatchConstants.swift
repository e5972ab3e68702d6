// The C names that Apple's module exports through `import Dispatch`. They keep C's spelling, so the linter's naming
// rules are off in this file.
//
// The constants are computed, so that a client module folds them into its own code instead of reading a global.
// swift-format-ignore-file: TypeNamesShouldBeCapitalized, AlwaysUseLowerCamelCase

/// An instant in the C encoding: 0 is now; all ones is forever; a value with the top bit clear counts nanoseconds of
/// uptime; a value with the two top bits set is a wall-clock instant, the negated count of nanoseconds since 1970; a
/// value with only the top bit set counts nanoseconds since boot, including sleep.
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

/// A quality-of-service class in C; `DispatchQoS.QoSClass` in Swift.
@frozen
public struct qos_class_t: RawRepresentable, Hashable, Sendable {
  /// The number.
  public var rawValue: UInt32

  /// The class with this number, which may be undefined.
  @inlinable
  public init(rawValue: UInt32) { self.rawValue = rawValue }

  /// The class with this number, which may be undefined.
  @inlinable
  public init(_ rawValue: UInt32) { self.rawValue = rawValue }
}

/// Work that keeps an interface responsive.
@inlinable public var QOS_CLASS_USER_INTERACTIVE: qos_class_t { qos_class_t(0x21) }

/// Work that the user has requested and waits for.
@inlinable public var QOS_CLASS_USER_INITIATED: qos_class_t { qos_class_t(0x19) }

/// Work of unknown importance.
@inlinable public var QOS_CLASS_DEFAULT: qos_class_t { qos_class_t(0x15) }

/// Long-running work whose progress the user may follow.
@inlinable public var QOS_CLASS_UTILITY: qos_class_t { qos_class_t(0x11) }

/// Work that the user does not see.
@inlinable public var QOS_CLASS_BACKGROUND: qos_class_t { qos_class_t(0x09) }

/// No class specified.
@inlinable public var QOS_CLASS_UNSPECIFIED: qos_class_t { qos_class_t(0) }
