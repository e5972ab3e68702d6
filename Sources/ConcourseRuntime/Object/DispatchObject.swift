/// The base class of the dispatch classes. Queues and sources have a target queue, and can be inactive or suspended.
///
/// On groups and semaphores `activate`, `suspend` and `resume` have no effect. Matching C type: `dispatch_object_t`.
open class DispatchObject: Hashable, CustomStringConvertible {
  /// Rarely used properties, allocated on first use: see `ObjectExtras`.
  @usableFromInline final let extrasReference = Atomic<UnsafeRawPointer?>(nil)
  @usableFromInline package final let kind: ObjectKind
  /// Of a queue, see `DispatchQueue.isAwaited`. Behind the queue's own fields it would make malloc take 16 bytes more.
  final let waitingThreads = Atomic<UInt8>(0)
  /// Of a queue: its relative priority, negated. Likewise.
  final let ownPriority = SeldomChanged<UInt8>(0)
  /// Of a queue: whether the recording has its name. Likewise.
  final let isNamedInRecording = SeldomChanged(false)
  /// The number of references that C programs hold: see "References of C programs" below.
  @usableFromInline final let references = Atomic<Int32>(0)

  package init(kind: ObjectKind) {
    self.kind = kind
    // Here and not in the initializer of queues, which would retain and release the queue even while nothing is recorded.
    if Recording.isOn { wasMade() }
  }

  /// A recording is on, and the object is complete.
  func wasMade() {}

  deinit { releaseExtras() }

  /// Whether this is the memory of a freed object. It is reliable only until the memory is reused. For references
  /// from C, where an excess release would otherwise remain undetected.
  @inlinable
  package final var isGone: Bool {
    // ORDERING: relaxed; a heuristic that publishes nothing.
    @inline(__always) get { extrasReference.load(ordering: .relaxed) == Self.gone }
  }

  /// The value of `extrasReference` after deinitialization. No object has this address.
  @inlinable
  static var gone: UnsafeRawPointer { UnsafeRawPointer(bitPattern: 0xDEAD_0B1E)! }

  /// Sets the queue on which this object's work runs.
  ///
  /// Only an initially inactive queue that has not been activated may change its target: on an active queue the call
  /// traps, and so does a target that would close a cycle. Ignored on global queues and the main queue. On groups and
  /// semaphores it sets the queue of the finalizer, on data also that of the deallocator.
  /// Matching C function: `dispatch_set_target_queue`.
  /// - Parameter queue: the new target; nil means the default-QoS global queue.
  open func setTarget(queue: DispatchQueue?) {
    // These run only what follows their end.
    if kind == .group || kind == .semaphore || kind == .data { objectExtras.setLastQueue(queue) }
  }

  /// Starts an initially inactive object; no effect on an active object, or on one without that state.
  /// Matching C function: `dispatch_activate`.
  open func activate() {}

  /// Increments the suspension count: no further item starts until every suspension is resumed.
  ///
  /// A running item completes. Ignored on global queues and the main queue. Matching C function: `dispatch_suspend`.
  open func suspend() {}

  /// Decrements the suspension count; at zero, execution resumes.
  ///
  /// Traps if there is no suspension to resume. Matching C function: `dispatch_resume`.
  open func resume() {}

  /// New extras, of the class that the object needs.
  func newExtras() -> ObjectExtras { ObjectExtras() }

  /// Of a group: one of its items has returned, and what it captured is destroyed.
  func itemEnded() {}

  /// Whether two references are the same object.
  public static func == (a: DispatchObject, b: DispatchObject) -> Bool { a === b }

  /// Hashes the object's identity.
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }

  /// A description for debugging: class and address.
  open var description: String {
    "<\(type(of: self)): 0x\(String(UInt(bitPattern: ObjectIdentifier(self)), radix: 16))>"
  }
}

/// The kind of a dispatch object. For queues it decides how items are admitted. For a reference from C it shows
/// whether the object has the type that the function expects.
@usableFromInline
package enum ObjectKind: UInt8 {
  case global, serial, concurrent, workloop, main, runLoop
  case source, group, semaphore, channel, data
  // Data symbols whose address C programs pass as an object; the byte at the offset of `kind` identifies them.
  case mainQueueSymbol, emptyDataSymbol, attribute, otherSymbol

  // In other modules the synthesized comparison is a call through a witness table.
  @inlinable
  package static func == (left: ObjectKind, right: ObjectKind) -> Bool { left.rawValue == right.rawValue }

  @inlinable
  package static func != (left: ObjectKind, right: ObjectKind) -> Bool { left.rawValue != right.rawValue }

  @inlinable
  package var isQueue: Bool {
    @inline(__always) get { rawValue <= ObjectKind.runLoop.rawValue }
  }
  /// Whether it is an object rather than a symbol.
  @inlinable
  package var isObject: Bool {
    @inline(__always) get { rawValue <= ObjectKind.data.rawValue }
  }
  /// Whether its references are counted: all objects except global queues. (C's reference to the main queue is a
  /// symbol.)
  @inlinable
  package var isCounted: Bool {
    @inline(__always) get {
      rawValue &- ObjectKind.serial.rawValue <= ObjectKind.data.rawValue &- ObjectKind.serial.rawValue
    }
  }
  /// Whether the items of the queue never overlap.
  package var isSerial: Bool { self != .concurrent && self != .global }
  /// Whether the queue keeps its items itself and runs them on a target. The other queues are the ends of
  /// hierarchies.
  var isLane: Bool { self != .global && !isServedByCaller }
  /// Whether the queue's items run on a thread of the program: the main thread, or the thread that performs them.
  var isServedByCaller: Bool { self == .main || self == .runLoop }
}

// MARK: References of C programs
//
// All references that C programs hold of one object count as a single Swift reference. A further one is one atomic
// addition here, where Swift's own counting is a loop.
//
// So neither side may release what the other has retained. If C releases too often, it takes a reference that Swift
// code or the library relies on; the count here detects that. If Swift releases too often, it takes the reference
// behind all of C's.

extension DispatchObject {
  /// Takes the first reference for C, to an object that no other thread knows yet.
  @inlinable
  package final var firstReference: UnsafeMutableRawPointer {
    // ORDERING: relaxed; the caller publishes the count with the object.
    references.store(1, ordering: .relaxed)
    return Unmanaged.passRetained(self).toOpaque()
  }

  /// Takes a further reference for C. Matching C function: `dispatch_retain`.
  @inlinable @inline(__always)
  package static func retainForC(_ object: Unmanaged<DispatchObject>) {
    // ORDERING: relaxed; publishes nothing. The caller has a reference, or another one is held for it.
    let before = object._withUnsafeGuaranteedRef {
      $0.references.wrappingAdd(1, ordering: .relaxed).oldValue
    }
    if before <= 0 { ReferencesOfSwift.retain(object, before) }
  }

  /// Gives back a reference of C, which may free the object. Matching C function: `dispatch_release`.
  @inlinable @inline(__always)
  package static func releaseForC(_ object: Unmanaged<DispatchObject>) {
    let isShared = object._withUnsafeGuaranteedRef {
      // ORDERING: acquiring and releasing; pairs with the other releases; every use through any reference precedes
      // the end. The unsigned comparison needs no instruction besides the subtraction's flags; it also refuses an old
      // value of zero.
      return UInt32(
        bitPattern: $0.references.wrappingSubtract(1, ordering: .acquiringAndReleasing).oldValue) > 1
    }
    if !isShared { ReferencesOfSwift.release(object) }
  }

  package static func trapAsGone(_ function: StaticString) -> Never {
    Trap.clientBug(
      703,
      "\(function): the object has been freed; it was released once too often, or used afterwards")
  }
}

/// The Swift reference behind those of C. Out-of-line, so that counting for C needs no stack frame.
@usableFromInline
enum ReferencesOfSwift {
  /// Retains the object for the first reference of C.
  @usableFromInline @inline(never)
  static func retain(_ object: Unmanaged<DispatchObject>, _ before: Int32) {
    object._withUnsafeGuaranteedRef {
      if $0.isGone { DispatchObject.trapAsGone("dispatch_retain") }
      if before < 0 { Trap.clientBug(704, "dispatch_retain: \($0) has 2^31 references") }
    }
    _ = object.retain()
  }

  /// Releases the object after the last reference of C.
  @usableFromInline @inline(never)
  static func release(_ object: Unmanaged<DispatchObject>) {
    // ORDERING: relaxed; after an excess release the count is below zero unless another thread retains at the same
    // moment. It is loaded again here, not passed in, so that counting remains one instruction.
    if object._withUnsafeGuaranteedRef({ $0.isGone || $0.references.load(ordering: .relaxed) < 0 }) {
      refuse(object)
    }
    object.release()
  }

  /// Out of line, so that the release of a used object needs no room for the message.
  @inline(never)
  private static func refuse(_ object: Unmanaged<DispatchObject>) -> Never {
    object._withUnsafeGuaranteedRef {
      if $0.isGone { DispatchObject.trapAsGone("dispatch_release") }
      Trap.clientBug(
        705,
        "dispatch_release: \($0) was released once too often: the program holds no more references, and the others "
          + "belong to the library")
    }
  }
}
