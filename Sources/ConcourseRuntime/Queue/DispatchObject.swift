/// The root of the dispatch classes: reference counted, with a target queue where that means
/// something, and with activation and suspension where that means something.
///
/// On groups and semaphores these calls have no effect. Matching C type: `dispatch_object_t`.
public class DispatchObject: Hashable, CustomStringConvertible {
  /// Seldom-used belongings, made when first needed: see `ObjectExtras`.
  @usableFromInline final let extrasReference = Atomic<UnsafeRawPointer?>(nil)
  @usableFromInline package final let kind: ObjectKind
  /// How many references C programs hold: see DispatchObject+References.swift.
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
