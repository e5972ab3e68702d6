/// What few objects need, kept out of the objects themselves: the C interface's context and finalizer, and in
/// `QueueExtras` what few queues need.
///
/// Handlers of C functions hold it too, since they are called with the context of the moment and may outlast
/// the object. With the last of them the finalizer is due.
class ObjectExtras {
  final let lock = Lock()
  private var context: UnsafeMutableRawPointer?
  private var contextOfEvents: UnsafeMutableRawPointer?
  private var finalizer: ContextFunction?
  /// Where the finalizer runs.
  private var lastQueue: DispatchQueue?

  final var currentContext: UnsafeMutableRawPointer? {
    get { lock.withLock { context } }
    set { lock.withLock { context = newValue } }
  }

  /// The context that event handlers get: as of the handler's setting, or of the activation if that came later.
  final var eventContext: UnsafeMutableRawPointer? { lock.withLock { contextOfEvents } }

  final func settleEventContext() { lock.withLock { contextOfEvents = context } }

  final func setFinalizer(_ function: ContextFunction?) {
    lock.withLock { finalizer = function }
  }

  final var hasFinalizer: Bool { lock.withLock { finalizer != nil } }

  /// A finalizer is to run on `queue`, nil standing for the default global queue.
  final func setLastQueue(_ queue: DispatchQueue?) {
    var other = queue
    lock.withLock { swap(&lastQueue, &other) }
    // The former one goes outside of the lock.
    withExtendedLifetime(other) {}
  }

  deinit {
    // Without a context there is nothing to finalize.
    guard let finalizer, context != nil else { return }
    let queue = lastQueue ?? Runtime.globalQueue(.default)
    queue.submit(
      NodeMagazine.make(.function(finalizer, context), level: queue.servingLevel(.unspecified, [])))
  }
}

extension DispatchObject {
  /// The extras, made on first use.
  final var objectExtras: ObjectExtras { uncountedExtras.takeUnretainedValue() }

  /// The same for calls that do not outlast the object, which keeps them.
  final var uncountedExtras: Unmanaged<ObjectExtras> { uncountedExtrasIfAny ?? makeExtras() }

  @inline(never)
  private final func makeExtras() -> Unmanaged<ObjectExtras> {
    let made = Unmanaged.passRetained(kind.isQueue ? QueueExtras() : ObjectExtras())
    // ORDERING: releasing on success publishes the new object; acquiring on failure sees the winner's.
    let (published, winner) = extrasReference.compareExchange(
      expected: nil, desired: made.toOpaque(), ordering: .acquiringAndReleasing)
    guard !published else { return made }
    made.release()
    return .fromOpaque(winner!)
  }

  /// The extras if there are any, for calls that do not outlast the object.
  final var uncountedExtrasIfAny: Unmanaged<ObjectExtras>? {
    // ORDERING: acquiring; pairs with the releasing publication above.
    // SAFETY: only `makeExtras` and `releaseExtras` touch the reference; it was retained once.
    extrasReference.load(ordering: .acquiring).map { .fromOpaque($0) }
  }

  final func releaseExtras() {
    // ORDERING: relaxed, both; the object is being destroyed by its only thread.
    let known = extrasReference.load(ordering: .relaxed)
    extrasReference.store(Self.gone, ordering: .relaxed)
    if let known { Unmanaged<ObjectExtras>.fromOpaque(known).release() }
  }
}

// SAFETY: every stored property is GUARDED BY `lock`.
extension ObjectExtras: @unchecked Sendable {}

/// A function as the C interface passes it, for the context that goes with it.
package typealias ContextFunction = @convention(c) (UnsafeMutableRawPointer?) -> Void

extension DispatchObject {
  /// What `dispatch_set_context` has attached; nothing can be attached to global queues and the main queue.
  package final var context: UnsafeMutableRawPointer? {
    get { uncountedExtrasIfAny?._withUnsafeGuaranteedRef { $0.currentContext } }
    set {
      if kind == .global || kind == .main || newValue == nil && uncountedExtrasIfAny == nil { return }
      uncountedExtras._withUnsafeGuaranteedRef { $0.currentContext = newValue }
    }
  }

  /// Sets what to call with the context once the object and its handlers have gone.
  package final func setFinalizer(_ function: ContextFunction?) {
    if kind == .global || kind == .main || function == nil && uncountedExtrasIfAny == nil { return }
    uncountedExtras._withUnsafeGuaranteedRef { $0.setFinalizer(function) }
  }
}
