/// The root of the dispatch classes: reference counted, with a target queue where that means
/// something, and with activation and suspension where that means something.
///
/// On groups and semaphores these calls have no effect. Matching C type: `dispatch_object_t`.
public class DispatchObject: Hashable, CustomStringConvertible {
  /// Seldom-used belongings, made when first needed: see `ObjectExtras`.
  @usableFromInline final let extrasReference = Atomic<UnsafeRawPointer?>(nil)
  @usableFromInline package final let kind: ObjectKind
  /// How many references C programs hold.
  @usableFromInline final let references = Atomic<Int32>(0)

  init(kind: ObjectKind) { self.kind = kind }

  deinit { releaseExtras() }

  /// Whether this is the memory of an object that has been freed, as far as that can be told: until the memory is used
  /// again. For references from C, one release too many of which would otherwise go unnoticed.
  @inlinable
  package final var isGone: Bool {
    // ORDERING: relaxed; a guess.
    @inline(__always) get { extrasReference.load(ordering: .relaxed) == Self.gone }
  }

  /// What `extrasReference` is when the object goes. No object lies there.
  @inlinable
  static var gone: UnsafeRawPointer { UnsafeRawPointer(bitPattern: 0xDEAD_0B1E)! }

  /// Sets the queue on which this object's work runs.
  ///
  /// Only an initially inactive queue that has not been activated may change its target: an active
  /// one traps, and so does a target that would close a cycle. Ignored on global queues and the main
  /// queue. Matching C function: `dispatch_set_target_queue`.
  /// - Parameter queue: the new target; nil means the default-QoS global queue.
  public func setTarget(queue: DispatchQueue?) {
    // Groups and semaphores run nothing but a finalizer.
    if kind == .group || kind == .semaphore { objectExtras.setLastQueue(queue) }
  }

  /// Lets an initially inactive object start; no effect on an object that is active or has no such
  /// state. Matching C function: `dispatch_activate`.
  public func activate() {}

  /// Adds one to the suspension count: nothing new starts until every suspension is resumed.
  ///
  /// The item that runs now completes. Ignored on global queues and the main queue. Matching C
  /// function: `dispatch_suspend`.
  public func suspend() {}

  /// Takes one from the suspension count; at zero, work goes on.
  ///
  /// Traps when there is no suspension to resume. Matching C function: `dispatch_resume`.
  public func resume() {}

  /// Whether two references are the same object.
  public static func == (a: DispatchObject, b: DispatchObject) -> Bool { a === b }

  /// Hashes the object's identity.
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }

  /// A line for debugging: class and address.
  public var description: String {
    "<\(type(of: self)): 0x\(String(UInt(bitPattern: ObjectIdentifier(self)), radix: 16))>"
  }
}

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

// References that C programs hold. All that they hold of one object count as one of Swift's references: one more is an
// addition here, where Swift's own counting is a loop.
//
// So nobody may give back what the other side has counted: C would take away a reference that Swift code, or the library
// itself, relies on, which is told from the number here; Swift would take away what stands behind all of C's.

extension DispatchObject {
  /// The first reference for C, of an object that nobody else knows yet.
  @inlinable
  package final var firstReference: UnsafeMutableRawPointer {
    // ORDERING: relaxed; whoever passes the reference on publishes it with the object.
    references.store(1, ordering: .relaxed)
    return Unmanaged.passRetained(self).toOpaque()
  }

  /// One more reference for C. Matching C function: `dispatch_retain`.
  @inlinable @inline(__always)
  package static func retainForC(_ object: Unmanaged<DispatchObject>) {
    // ORDERING: relaxed; the caller has a reference, or somebody keeps the object for it meanwhile.
    let before = object._withUnsafeGuaranteedRef {
      $0.references.wrappingAdd(1, ordering: .relaxed).oldValue
    }
    if before <= 0 { ReferencesOfSwift.retain(object, before) }
  }

  /// One reference of C's less; the object may be gone then. Matching C function: `dispatch_release`.
  @inlinable @inline(__always)
  package static func releaseForC(_ object: Unmanaged<DispatchObject>) {
    let isShared = object._withUnsafeGuaranteedRef {
      // ORDERING: acquiring and releasing; what was done with each of the references comes before the end.
      // Without a sign the comparison is one with the instruction's own flags; zero is the first to be refused.
      return UInt32(
        bitPattern: $0.references.wrappingSubtract(1, ordering: .acquiringAndReleasing).oldValue) > 1
    }
    if !isShared { ReferencesOfSwift.release(object) }
  }

  /// Traps for a reference to an object that has been freed.
  package static func trapAsGone(_ function: StaticString) -> Never {
    Trap.clientBug(
      "\(function): the object has been freed; it was released once too often, or used afterwards")
  }
}

/// Swift's references behind those of C. Functions of their own, so that counting for C needs no stack.
@usableFromInline
enum ReferencesOfSwift {
  /// C has its first reference.
  @usableFromInline @inline(never)
  static func retain(_ object: Unmanaged<DispatchObject>, _ before: Int32) {
    object._withUnsafeGuaranteedRef {
      if $0.isGone { DispatchObject.trapAsGone("dispatch_retain") }
      if before < 0 { Trap.clientBug("dispatch_retain: \($0) has 2^31 references") }
    }
    _ = object.retain()
  }

  /// C has given its last reference back.
  @usableFromInline @inline(never)
  static func release(_ object: Unmanaged<DispatchObject>) {
    object._withUnsafeGuaranteedRef {
      if $0.isGone { DispatchObject.trapAsGone("dispatch_release") }
      // ORDERING: relaxed; below zero for certain, but for one who retains at this very moment: asked for here, and not
      // handed over, so that counting is one instruction.
      if $0.references.load(ordering: .relaxed) < 0 {
        Trap.clientBug(
          "dispatch_release: \($0) was released once too often: all references that the program had are gone, and what "
            + "the library has is not the program's")
      }
    }
    object.release()
  }
}
