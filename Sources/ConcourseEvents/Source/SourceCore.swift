/// The implementation of a `DispatchSource`. It outlives the object that clients hold while a polling thread or a
/// visit still uses it.
///
/// A backend raises an event; the state requests a visit; the visit runs on the target queue, collects the data,
/// calls the handler, and re-arms the backend.
final class SourceCore {
  /// How events that the handler has not received yet are merged.
  enum Merging {
    case add, or, replace
  }

  /// What the client has set. Released outside the lock: captures may run client code when they are destroyed.
  struct Handlers {
    var event: SourceHandler?
    var registration: SourceHandler?
    var cancel: SourceHandler?
    /// Called before the cancel handler; ends a sequence of the source's events.
    var endObserver: (() -> Void)?
  }

  /// What only C programs set.
  struct Settings {
    /// Whether the source must be cancelled before its release, and keeps its handlers and target from activation on.
    var hasMandatoryCancel = false
    /// The lowest level at which handlers run.
    var floor = QoSLevel.unspecified
    /// The context and its finalizer, once the `DispatchSource` is deinitialized.
    var extras: ObjectExtras?
  }

  let kind: SourceKind
  let handle: UInt
  let mask: UInt
  let backend: SourceBackend
  private let merging: Merging

  let lock = Lock(.source)
  // GUARDED BY `lock`, so accesses cannot overlap. Dynamic exclusivity checks would cost a tenth of a source's
  // lifetime.
  @exclusivity(unchecked) var state = SourceState()
  @exclusivity(unchecked) private var target: DispatchQueue
  @exclusivity(unchecked) var handlers = Handlers()
  @exclusivity(unchecked) var settings = Settings()
  /// The queue to which the pending visit was submitted.
  // SAFETY: only compared, never dereferenced, by the visit while it runs on that queue.
  @exclusivity(unchecked) private var visitTarget: Unmanaged<DispatchQueue>?
  /// Whether an event came while there was no handler. The backend then rests until one is set.
  @exclusivity(unchecked) private var awaitsHandler = false
  /// The thread that is calling a handler, or 0.
  @exclusivity(unchecked) var handlerThread: UInt32 = 0
  /// The threads in `cancelAndWait`, as a list on their stacks.
  @exclusivity(unchecked) var cancelWaiters: UnsafeMutablePointer<CancelWaiter>?

  /// The merged values that no visit has collected.
  private let pending = Atomic<UInt>(0)
  /// The `data` of the running handler.
  private let current = Atomic<UInt>(0)

  init(
    kind: SourceKind, handle: UInt, mask: UInt, merging: Merging, target: DispatchQueue?,
    backend: SourceBackend
  ) {
    self.kind = kind
    self.handle = handle
    self.mask = mask
    self.merging = merging
    self.target = target ?? DispatchQueue.global(at: .default)
    self.backend = backend
  }

  // MARK: Events

  /// Merges an event of the backend. Call from any thread.
  func raise(_ value: UInt) {
    // An earlier visit may take the value that replaces a zero, and its handler may release the last reference to the
    // source.
    let kept = merging == .replace ? Unmanaged.passRetained(self) : nil
    defer { kept?.release() }
    let before: UInt
    // ORDERING: releasing, all three; pair with the acquiring exchange in `callEventHandler`; publish to the handler
    // what the raising thread did before.
    switch merging {
    case .add: before = pending.wrappingAdd(value, ordering: .releasing).oldValue
    case .or: before = pending.bitwiseOr(value, ordering: .releasing).oldValue
    case .replace: before = pending.exchange(value, ordering: .releasing)
    }
    // The thread that makes the value nonzero requests the visit.
    guard before == 0 else { return }
    if Recording.isOn { record(value) }
    act { $0.raise() }
  }

  @inline(never)
  private func record(_ value: UInt) {
    let queue = UInt(bitPattern: Unmanaged.passUnretained(currentTarget).toOpaque())
    Recording.sourceRaised(
      Unmanaged.passUnretained(self).toOpaque(), value: value, kind: kind.number, queue: queue)
  }

  /// Discards the values that have been raised and not collected.
  func discardEvents() {
    lock.withLock {
      state.discardEvents()
      // ORDERING: relaxed; the value is discarded, so nothing is published.
      pending.store(0, ordering: .relaxed)
    }
  }

  /// The `data` of the running handler.
  var data: UInt {
    // ORDERING: relaxed; defined only on the thread that runs the handler, which stored the value itself.
    current.load(ordering: .relaxed)
  }

  var isCancelled: Bool { lock.withLock { state.isCancelled } }

  // MARK: Life

  var isInactive: Bool { lock.withLock { !state.isActive } }

  func activate() {
    Runtime.requireThreads("activating a source")
    act { $0.activate() }
  }
  func cancel() { act { $0.cancel() } }
  func suspend() { lock.withLock { state.suspend() } }

  func resume() {
    // In older C code the first resume activates a new source.
    let isInactive = lock.withLock { !state.isActive && state.suspensions == 0 }
    if isInactive { return activate() }
    act { state in
      guard let action = state.resume() else {
        Trap.clientBug(501, "resume() on \(description), which is not suspended: more resumes than suspends")
      }
      return action
    }
  }

  var currentTarget: DispatchQueue { lock.withLock { target } }

  /// - Parameter note: called under the lock, before the former target is released.
  func setTarget(_ queue: DispatchQueue?, _ note: (DispatchQueue) -> Void = { _ in }) {
    let queue = queue ?? DispatchQueue.global(at: .default)
    // Release the former target outside the lock.
    let former = lock.withLock { () -> DispatchQueue in
      requireChangeable("a target queue", state)
      let former = target
      target = queue
      note(queue)
      return former
    }
    withExtendedLifetime(former) {}
  }

  /// Delays the finalizer until no handler can be called any more.
  func retainExtras(_ extras: ObjectExtras) { lock.withLock { settings.extras = extras } }

  /// Ends the source when the `DispatchSource` is deinitialized.
  func abandon() {
    let (last, mustBeCancelled) = lock.withLock { (state, settings.hasMandatoryCancel) }
    if mustBeCancelled && !last.isCancelled {
      Trap.clientBug(
        504,
        "the last reference to \(description), which has a mandatory cancel handler, was released before it was "
          + "cancelled; cancel it first")
    }
    if last.suspensions > 0 {
      Trap.clientBug(
        502,
        "the last reference to \(description) was released while it was suspended; resume it first")
    }
    if !last.isActive {
      Trap.clientBug(
        503,
        "the last reference to \(description) was released while it was inactive; activate it first")
    }
    // A cancelled source finishes by itself, and still calls a pending cancel handler.
    guard !last.isCancelled else { return }
    act { $0.abandon() }
    // If the running event handler released the source, the visit keeps that handler alive until it returns.
    releaseHandlers()
  }

  var description: String {
    "the \(kind.rawValue) source" + (kind.handleName.map { " of \($0) \(handle)" } ?? "")
  }

  // MARK: Handlers

  func setEventHandler(_ handler: consuming SourceHandler?) {
    let isSet = handler != nil
    var other = consume handler
    let rearms = lock.withLock { () -> Bool in
      requireChangeable("an event handler", state)
      guard !state.isCancelled else { return false }
      swap(&handlers.event, &other)
      guard isSet, awaitsHandler else { return false }
      awaitsHandler = false
      return true
    }
    if rearms { backend.restart() }
    // Release the former handler outside the lock, here and below: its captures may run client code when they are
    // destroyed.
    withExtendedLifetime(other) {}
  }

  func setCancelHandler(_ handler: consuming SourceHandler?) {
    var other = consume handler
    lock.withLock {
      requireChangeable("a cancel handler", state)
      swap(&handlers.cancel, &other)
    }
    withExtendedLifetime(other) {}
  }

  func setRegistrationHandler(_ handler: consuming SourceHandler?) {
    let isSet = handler != nil
    var other = consume handler
    act { state in
      requireChangeable("a registration handler", state)
      guard !state.isCancelled else { return .nothing }
      swap(&handlers.registration, &other)
      return state.owe(registrationHandler: isSet)
    }
    withExtendedLifetime(other) {}
  }

  func setEndObserver(_ observer: @escaping () -> Void) {
    let isOver = lock.withLock { () -> Bool in
      if !state.isCancelled { handlers.endObserver = observer }
      return state.isCancelled
    }
    if isOver { observer() }
  }

  /// Takes the handlers from an ended source. Call under the lock.
  private func detachHandlers() -> Handlers {
    var detached = Handlers()
    swap(&handlers, &detached)
    return detached
  }

  private func releaseHandlers() {
    let detached = lock.withLock { detachHandlers() }
    withExtendedLifetime(detached) { detached.endObserver?() }
  }

  // MARK: Acting

  /// Changes the state, and performs the resulting actions outside the lock.
  private func act(_ change: (inout SourceState) -> SourceState.Action) {
    lock.lock()
    var action = change(&state)
    while true {
      switch action {
      case .nothing:
        if cancelWaiters != nil { signalCancelWaiters() }
        return lock.unlock()
      case .visit:
        if cancelWaiters != nil { signalCancelWaiters() }
        return submitVisit()
      case .install:
        lock.unlock()
        backend.install(for: self)
        lock.lock()
        action = state.installed()
      case .remove:
        lock.unlock()
        backend.remove()
        lock.lock()
        action = state.removed()
      }
    }
  }

  /// Submits a visit to the target queue. Call under the lock; releases it.
  private func submitVisit() {
    let queue = target
    visitTarget = .passUnretained(queue)
    let service = service(on: queue)
    lock.unlock()
    // A closure that captures a single object needs no allocation.
    queue.submit(
      NodeMagazine.make(.engine { [self] in visit() }, level: service.level, traits: service.traits))
  }

  /// The level and traits for the next handler. Call under the lock. This reads the service without retaining the
  /// handler: otherwise the polling thread could release the last reference to the client's captures.
  private func service(on queue: DispatchQueue) -> (level: QoSLevel, traits: WorkTraits) {
    guard let service = state.isCancelled ? handlers.cancel?.service : handlers.event?.service else {
      return (max(queue.servingLevel(.unspecified, []), settings.floor), [])
    }
    return (max(queue.servingLevel(service.qos, service.flags), settings.floor), service.traits)
  }

  /// The item that runs on the target queue.
  private func visit() {
    lock.lock()
    if visitTarget?.toOpaque() != Unmanaged.passUnretained(target).toOpaque() { return submitVisit() }
    while let step = state.takeStep() {
      switch step {
      case .registrationHandler:
        let handler = handlers.registration.take()
        handlerThread = CurrentThread.id
        lock.unlock()
        call(consume handler)
        lock.lock()
        endCall()
      case .eventHandler:
        let handler = handlers.event
        guard handler != nil else { return consumeEvents() }
        awaitsHandler = false
        handlerThread = CurrentThread.id
        lock.unlock()
        callEventHandler(consume handler)
        // The next event, if any, is submitted behind the items that already wait.
        return act {
          handlerThread = 0
          return $0.endVisit()
        }
      case .cancelHandler:
        let detached = detachHandlers()
        lock.unlock()
        finish(consume detached)
        lock.lock()
      }
    }
    lock.unlock()
  }

  /// Ends a visit that has no event handler; the backend rests until one is set. Call under the lock; releases it.
  /// The lock excludes `setEventHandler`, so events raised after it has set a handler are not discarded.
  @inline(never)
  private func consumeEvents() {
    awaitsHandler = true
    // ORDERING: relaxed; the value is discarded, so nothing is published.
    pending.store(0, ordering: .relaxed)
    lock.unlock()
    act { $0.endVisit() }
  }

  /// Calls a handler and releases it, which may destroy its captures, even the source.
  @inline(never)
  private func call(_ handler: consuming SourceHandler?) { handler?.call() }

  /// Releases the handlers for events, and then calls the cancel handler.
  @inline(never)
  private func finish(_ detached: consuming Handlers) {
    let (handler, observer) = (detached.cancel.take(), detached.endObserver.take())
    _ = consume detached
    observer?()
    call(consume handler)
  }

  private func callEventHandler(_ handler: consuming SourceHandler?) {
    // ORDERING: acquiring; pairs with the releasing operations in `raise`.
    let raised = pending.exchange(0, ordering: .acquiring)
    guard raised != 0, let handler else { return }
    guard let value = backend.collect(raised) else { return backend.rearm() }
    // ORDERING: relaxed; only this thread reads the value.
    current.store(value, ordering: .relaxed)
    handler.call()
    backend.rearm()
  }
}

// SAFETY: mutable fields are guarded as noted above, or atomic.
extension SourceCore: @unchecked Sendable {}
