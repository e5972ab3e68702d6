/// What a dispatch object is: for queues it decides how work is admitted, and for a reference that comes from C
/// it tells what the program took it for from what it is.
@usableFromInline
package enum ObjectKind: UInt8 {
  case global, serial, concurrent, workloop, main, runLoop
  case source, group, semaphore, channel, data
  // What C programs know by the address of a symbol, where a byte says so at the place where objects have their kind.
  case mainQueueSymbol, emptyDataSymbol, attribute, otherSymbol

  // The compiler's own comparison is a call through a witness table in other modules.
  @inlinable
  package static func == (left: ObjectKind, right: ObjectKind) -> Bool { left.rawValue == right.rawValue }

  @inlinable
  package static func != (left: ObjectKind, right: ObjectKind) -> Bool { left.rawValue != right.rawValue }

  /// It is a queue.
  @inlinable
  package var isQueue: Bool {
    @inline(__always) get { rawValue <= ObjectKind.runLoop.rawValue }
  }
  /// It is an object.
  @inlinable
  package var isObject: Bool {
    @inline(__always) get { rawValue <= ObjectKind.data.rawValue }
  }
  /// References to it are counted: it is an object, and no global queue. (C's reference to the main queue is a symbol.)
  @inlinable
  package var isCounted: Bool {
    @inline(__always) get {
      rawValue &- ObjectKind.serial.rawValue <= ObjectKind.data.rawValue &- ObjectKind.serial.rawValue
    }
  }
  /// A queue whose items never overlap.
  var isSerial: Bool { self != .concurrent && self != .global }
  /// A queue that keeps items itself and runs them on a target; the others are where hierarchies end.
  var isLane: Bool { self != .global && !isServedByCaller }
  /// A queue whose items run on a thread of the program's: the main thread, or one that performs them.
  var isServedByCaller: Bool { self == .main || self == .runLoop }
}
