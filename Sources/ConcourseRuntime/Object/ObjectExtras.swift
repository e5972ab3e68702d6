/// Rarely used properties, allocated separately: the context and finalizer of the C interface, and in `QueueExtras`
/// rarely used properties of queues.
///
/// Handlers with C functions retain the extras too, since they are called with the current context and may outlive
/// the object. The finalizer runs after the last of these references.
package class ObjectExtras {
  final let lock = Lock(.objectExtras)
  private var context: UnsafeMutableRawPointer?
  private var contextOfEvents: UnsafeMutableRawPointer?
  private var finalizer: ContextFunction?
  /// The queue on which the finalizer runs, and whether it has been set.
  private var lastQueue: DispatchQueue?
  private var hasLastQueue = false

  package final var currentContext: UnsafeMutableRawPointer? {
    get { lock.withLock { context } }
    set { lock.withLock { context = newValue } }
  }

  /// The context for event handlers: that at the setting of the handler, or at activation if that came later.
  package final var eventContext: UnsafeMutableRawPointer? { lock.withLock { contextOfEvents } }

  package final func settleEventContext() { lock.withLock { contextOfEvents = context } }

  final func setFinalizer(_ function: ContextFunction?) {
    lock.withLock { finalizer = function }
  }

  package final var hasFinalizer: Bool { lock.withLock { finalizer != nil } }

  /// Sets the queue on which the finalizer runs; nil means the default global queue.
  package final func setLastQueue(_ queue: DispatchQueue?) {
    var other = queue
    lock.withLock {
      swap(&lastQueue, &other)
      hasLastQueue = true
    }
    // Release the former queue outside the lock.
    withExtendedLifetime(other) {}
  }

  /// The queue on which the finalizer runs, which is `queue` if none has been set.
  package final func lastQueue(orElse queue: DispatchQueue?) -> DispatchQueue? {
    lock.withLock {
      if !hasLastQueue { (lastQueue, hasLastQueue) = (queue, true) }
      return lastQueue
    }
  }

  deinit {
    // Without a context there is nothing to finalize.
    guard let finalizer, context != nil else { return }
    DispatchQueue.finalize(context, finalizer, on: lastQueue)
  }
}

extension DispatchObject {
  /// The extras, allocated on first use.
  package final var objectExtras: ObjectExtras { uncountedExtras.takeUnretainedValue() }

  /// As `objectExtras`, unretained, for calls that do not outlive the object.
  package final var uncountedExtras: Unmanaged<ObjectExtras> { uncountedExtrasIfAny ?? makeExtras() }

  @inline(never)
  private final func makeExtras() -> Unmanaged<ObjectExtras> {
    let made = Unmanaged.passRetained(newExtras())
    // ORDERING: releasing on success publishes the extras; acquiring on failure sees those of the winner; pairs with
    // the acquiring load in `uncountedExtrasIfAny`.
    let (published, winner) = extrasReference.compareExchange(
      expected: nil, desired: made.toOpaque(), ordering: .acquiringAndReleasing)
    guard !published else { return made }
    made.release()
    return .fromOpaque(winner!)
  }

  /// The extras, if allocated, unretained, for calls that do not outlive the object.
  package final var uncountedExtrasIfAny: Unmanaged<ObjectExtras>? {
    // ORDERING: acquiring; pairs with the releasing compare-exchange in `makeExtras`.
    // SAFETY: only `makeExtras` and `releaseExtras` write the reference; the object retains the extras once.
    extrasReference.load(ordering: .acquiring).map { .fromOpaque($0) }
  }

  final func releaseExtras() {
    // ORDERING: relaxed, both; only the destroying thread accesses the object.
    let known = extrasReference.load(ordering: .relaxed)
    extrasReference.store(Self.gone, ordering: .relaxed)
    if let known { Unmanaged<ObjectExtras>.fromOpaque(known).release() }
  }
}

// SAFETY: every stored property is GUARDED BY `lock`.
extension ObjectExtras: @unchecked Sendable {}

/// A function of the C interface that takes a context.
package typealias ContextFunction = @convention(c) (UnsafeMutableRawPointer?) -> Void

extension DispatchObject {
  /// The context that `dispatch_set_context` has attached. Global queues and the main queue have none.
  package final var context: UnsafeMutableRawPointer? {
    get { uncountedExtrasIfAny?._withUnsafeGuaranteedRef { $0.currentContext } }
    set {
      if kind == .global || kind == .main || newValue == nil && uncountedExtrasIfAny == nil { return }
      uncountedExtras._withUnsafeGuaranteedRef { $0.currentContext = newValue }
    }
  }

  /// Sets the function to call with the context when the object and its handlers are gone.
  package final func setFinalizer(_ function: ContextFunction?) {
    if kind == .global || kind == .main || function == nil && uncountedExtrasIfAny == nil { return }
    uncountedExtras._withUnsafeGuaranteedRef { $0.setFinalizer(function) }
  }
}
