/// A source as the event road knows it: outlives the `DispatchSource` that users hold by as long as a
/// poller or a visit is under way.
///
/// One way leads through it: a backend raises an event; the state asks for a visit; the visit runs on the
/// target queue, collects what to report, calls the handler, and lets the backend observe on.
final class SourceCore {
  /// How events that the handler has not seen yet become one.
  enum Merging {
    case add, or, replace
  }

  let kind: SourceKind
  let handle: UInt
  let mask: UInt
  let backend: SourceBackend
  private let merging: Merging

  let lock = Lock()
  // GUARDED BY `lock`, which keeps accesses apart: to have each of them checked would be a tenth of a source's life.
  @exclusivity(unchecked) var state = SourceState()
  @exclusivity(unchecked) private var target: DispatchQueue
  @exclusivity(unchecked) private var eventHandler: SourceHandler?
  @exclusivity(unchecked) private var registrationHandler: SourceHandler?
  @exclusivity(unchecked) var cancelHandler: SourceHandler?
  /// Called before the cancel handler: ends a sequence of the source's events.
  @exclusivity(unchecked) private var endObserver: (() -> Void)?
  /// Where the visit that is due has been submitted.
  // SAFETY: compared only, and by the visit, while that queue runs it.
  @exclusivity(unchecked) private var visited: Unmanaged<DispatchQueue>?
  /// Whether events came while there was no handler: the backend then waits for one.
  @exclusivity(unchecked) private var awaitsHandler = false
  /// The thread that calls a handler now, or 0.
  @exclusivity(unchecked) var caller: UInt32 = 0
  /// Threads that wait until the source is over, on their stacks.
  @exclusivity(unchecked) var enders: UnsafeMutablePointer<SourceEnder>?
  /// Whether the source must be cancelled before it goes, and keeps its handlers from its activation on.
  @exclusivity(unchecked) var isStrict = false
  /// The context and its finalizer, when the `DispatchSource` has gone.
  @exclusivity(unchecked) private var extras: ObjectExtras?
  /// The level that handlers are lifted to.
  @exclusivity(unchecked) var floor = QoSLevel.unspecified

  /// Merged and not yet collected.
  private let pending = Atomic<UInt>(0)
  /// What the handler that runs finds in `data`.
  private let current = Atomic<UInt>(0)

  init(
    kind: SourceKind, handle: UInt, mask: UInt, merging: Merging, target: DispatchQueue?,
    backend: SourceBackend
  ) {
    self.kind = kind
    self.handle = handle
    self.mask = mask
    self.merging = merging
    self.target = target ?? Runtime.globalQueue(.default)
    self.backend = backend
  }

  // MARK: Events

  /// Takes an event from the backend, from any thread.
  func raise(_ value: UInt) {
    // What replaces a zero may be taken by a visit that was due before, whose handler may be the end of the source.
    let kept = merging == .replace ? Unmanaged.passRetained(self) : nil
    defer { kept?.release() }
    let before: UInt
    // ORDERING: releasing, all three; they pair with the acquiring exchange in `callEventHandler`: the
    // handler sees what the raising thread did before.
    switch merging {
    case .add: before = pending.wrappingAdd(value, ordering: .releasing).oldValue
    case .or: before = pending.bitwiseOr(value, ordering: .releasing).oldValue
    case .replace: before = pending.exchange(value, ordering: .releasing)
    }
    // Whoever made it more than zero asks for the visit.
    if before == 0 { act { $0.raise() } }
  }

  /// Forgets what has been raised and not collected.
  func discardEvents() {
    lock.withLock {
      state.discardEvents()
      // ORDERING: relaxed; nothing is taken.
      pending.store(0, ordering: .relaxed)
    }
  }

  /// What the handler that runs is told.
  var data: UInt {
    // ORDERING: relaxed; defined only on the thread that runs the handler, which wrote it.
    current.load(ordering: .relaxed)
  }

  var isCancelled: Bool { lock.withLock { state.isCancelled } }

  // MARK: Life

  /// Whether it has not been activated yet.
  var isInactive: Bool { lock.withLock { !state.isActive } }

  func activate() {
    Runtime.requireThreads("activating a source")
    act { $0.activate() }
  }
  func cancel() { act { $0.cancel() } }
  func suspend() { lock.withLock { state.suspend() } }

  func resume() {
    // A source made by the C interface's older habits is activated by its first resume.
    let isInactive = lock.withLock { !state.isActive && state.suspensions == 0 }
    if isInactive { return activate() }
    act { state in
      guard let action = state.resume() else {
        Trap.clientBug("resume() on \(description), which is not suspended: more resumes than suspends")
      }
      return action
    }
  }

  var currentTarget: DispatchQueue { lock.withLock { target } }

  func setTarget(_ queue: DispatchQueue?) {
    let queue = queue ?? Runtime.globalQueue(.default)
    // The former target is released outside the lock.
    let former = lock.withLock { () -> DispatchQueue in
      requireChangeable("a target queue", state)
      let former = target
      target = queue
      return former
    }
    withExtendedLifetime(former) {}
  }

  /// Lets the finalizer wait until no handler can be called any more.
  func keep(_ extras: ObjectExtras) { lock.withLock { self.extras = extras } }

  /// The `DispatchSource` has gone.
  func abandon() {
    let (last, mustBeCancelled) = lock.withLock { (state, isStrict) }
    if mustBeCancelled && !last.isCancelled {
      Trap.clientBug(
        "the last reference to \(description), which has a mandatory cancel handler, was released before it was "
          + "cancelled; cancel it first")
    }
    if last.suspensions > 0 {
      Trap.clientBug(
        "the last reference to \(description) was released while it was suspended; resume it first")
    }
    if !last.isActive {
      Trap.clientBug(
        "the last reference to \(description) was released while it was inactive; activate it first")
    }
    // What was cancelled comes to its end by itself, and a cancel handler that is owed is still called.
    guard !last.isCancelled else { return }
    act { $0.abandon() }
    // Should the event handler be the one who dropped the source, it keeps itself alive until it returns.
    dropHandlers()
  }

  var description: String {
    "the \(kind.rawValue) source" + (kind.handleName.map { " of \($0) \(handle)" } ?? "")
  }

  // MARK: Handlers

  func setEventHandler(_ handler: consuming SourceHandler?) {
    let isThere = handler != nil
    var other = consume handler
    let rearms = lock.withLock { () -> Bool in
      requireChangeable("an event handler", state)
      guard !state.isCancelled else { return false }
      swap(&eventHandler, &other)
      guard isThere, awaitsHandler else { return false }
      awaitsHandler = false
      return true
    }
    if rearms { backend.restart() }
    // The former handler goes outside the lock, here and below, since what it captured may be destroyed with
    // it, and that is the client's code.
    withExtendedLifetime(other) {}
  }

  func setCancelHandler(_ handler: consuming SourceHandler?) {
    var other = consume handler
    lock.withLock {
      requireChangeable("a cancel handler", state)
      swap(&cancelHandler, &other)
    }
    withExtendedLifetime(other) {}
  }

  func setRegistrationHandler(_ handler: consuming SourceHandler?) {
    let isThere = handler != nil
    var other = consume handler
    act { state in
      requireChangeable("a registration handler", state)
      guard !state.isCancelled else { return .nothing }
      swap(&registrationHandler, &other)
      return state.owe(registrationHandler: isThere)
    }
    withExtendedLifetime(other) {}
  }

  func setEndObserver(_ observer: @escaping () -> Void) {
    let isOver = lock.withLock { () -> Bool in
      if !state.isCancelled { endObserver = observer }
      return state.isCancelled
    }
    if isOver { observer() }
  }

  /// What a source that has ended lets go of: outside the lock, since what handlers captured may run code of its
  /// own when it goes.
  private struct Belongings {
    var eventHandler: SourceHandler?
    var registrationHandler: SourceHandler?
    var cancelHandler: SourceHandler?
    var endObserver: (() -> Void)?
  }

  /// Call under the lock.
  private func takeBelongings() -> Belongings {
    Belongings(
      eventHandler: eventHandler.take(), registrationHandler: registrationHandler.take(),
      cancelHandler: cancelHandler.take(), endObserver: endObserver.take())
  }

  private func dropHandlers() {
    let belongings = lock.withLock { takeBelongings() }
    withExtendedLifetime(belongings) { belongings.endObserver?() }
  }

  // MARK: Acting

  /// Changes the state and does what it asks for, outside the lock.
  private func act(_ change: (inout SourceState) -> SourceState.Action) {
    lock.lock()
    var action = change(&state)
    while true {
      switch action {
      case .nothing:
        if enders != nil { releaseEnders() }
        return lock.unlock()
      case .visit:
        if enders != nil { releaseEnders() }
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

  /// Puts a visit to the target queue. Call under the lock, which it gives up.
  private func submitVisit() {
    let queue = target
    visited = .passUnretained(queue)
    let service = service(on: queue)
    lock.unlock()
    // A closure that captures one object and nothing else needs no memory of its own.
    queue.submit(
      NodeMagazine.make(.closure { [self] in visit() }, level: service.level, traits: service.traits))
  }

  /// How the handler that is next wants to be served. Call under the lock: no reference to the handler may
  /// outlive it here, or the thread that polls could be the one that destroys what the client captured.
  private func service(on queue: DispatchQueue) -> (level: QoSLevel, traits: WorkTraits) {
    guard let service = state.isCancelled ? cancelHandler?.service : eventHandler?.service else {
      return (max(queue.servingLevel(.unspecified, []), floor), [])
    }
    return (max(service.level(on: queue), floor), service.traits)
  }

  /// Runs on the target queue.
  private func visit() {
    lock.lock()
    if visited?.toOpaque() != Unmanaged.passUnretained(target).toOpaque() { return submitVisit() }
    while let step = state.takeStep() {
      switch step {
      case .registrationHandler:
        let handler = registrationHandler.take()
        caller = CurrentThread.id
        lock.unlock()
        call(consume handler)
        lock.lock()
        endCall()
      case .eventHandler:
        let handler = eventHandler
        guard handler != nil else { return consumeEvents() }
        awaitsHandler = false
        caller = CurrentThread.id
        lock.unlock()
        callEventHandler(consume handler)
        // The next event, if there is one, queues up behind what waits now.
        return act {
          caller = 0
          return $0.endVisit()
        }
      case .cancelHandler:
        let belongings = takeBelongings()
        lock.unlock()
        end(consume belongings)
        lock.lock()
      }
    }
    lock.unlock()
  }

  /// There is no event handler: the visit ends, and the backend rests until there is one. Call under the lock, which
  /// it gives up, and which keeps whoever sets a handler waiting: what comes after that is not for nobody.
  @inline(never)
  private func consumeEvents() {
    awaitsHandler = true
    // ORDERING: relaxed; nothing is taken.
    pending.store(0, ordering: .relaxed)
    lock.unlock()
    act { $0.endVisit() }
  }

  /// Calls a handler and lets go of it, which may be the end of what it captured: of the source, even.
  @inline(never)
  private func call(_ handler: consuming SourceHandler?) { handler?.call() }

  /// Lets go of what only events needed, and then calls the cancel handler.
  @inline(never)
  private func end(_ belongings: consuming Belongings) {
    let (handler, observer) = (belongings.cancelHandler.take(), belongings.endObserver.take())
    _ = consume belongings
    observer?()
    call(consume handler)
  }

  private func callEventHandler(_ handler: consuming SourceHandler?) {
    // ORDERING: acquiring; pairs with `raise`.
    let raised = pending.exchange(0, ordering: .acquiring)
    guard raised != 0, let handler else { return }
    guard let value = backend.collect(raised) else { return backend.rearm() }
    // ORDERING: relaxed; for this thread.
    current.store(value, ordering: .relaxed)
    handler.call()
    backend.rearm()
  }
}

// SAFETY: the guards above.
extension SourceCore: @unchecked Sendable {}
