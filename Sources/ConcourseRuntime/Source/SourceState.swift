/// What a source is in, and what its owner must do next. Pure: it decides, `SourceCore` acts.
///
/// A *visit* is the item by which a source comes to its target queue. At most one is on its way or
/// running, which is why handlers never overlap, whatever the queue.
struct SourceState {
  /// The backend's part.
  private enum Registration {
    /// Not yet asked to observe.
    case none
    /// `install` runs on the activating thread.
    case installing
    case installed
    /// `remove` runs on the cancelling thread.
    case removing
    /// Will not observe any more.
    case removed
  }

  private(set) var isActive = false
  private(set) var isCancelled = false
  private(set) var suspensions = 0
  private var registration = Registration.none
  private var visitIsDue = false
  private var hasEvent = false
  private var owesRegistrationHandler = false
  private var owesCancelHandler = false

  /// What the caller must do after it has let go of the lock.
  enum Action {
    case nothing
    /// Call the backend's `install`, then `installed`.
    case install
    /// Call the backend's `remove`, then `removed`.
    case remove
    /// Submit a visit to the target queue.
    case visit
  }

  // MARK: Transitions

  /// `activate()`.
  mutating func activate() -> Action {
    guard !isActive else { return .nothing }
    isActive = true
    if isCancelled { return cancelled() }
    registration = .installing
    return .install
  }

  /// The backend's `install` has returned.
  mutating func installed() -> Action {
    if isCancelled {
      registration = .removing
      return .remove
    }
    registration = .installed
    return visitIfDue()
  }

  /// The backend has an event.
  mutating func raise() -> Action {
    guard !isCancelled else { return .nothing }
    hasEvent = true
    return visitIfDue()
  }

  /// What was raised is void.
  mutating func discardEvents() { hasEvent = false }

  /// A registration handler has been set, or one was set before activation.
  mutating func owe(registrationHandler: Bool) -> Action {
    owesRegistrationHandler = registrationHandler
    return visitIfDue()
  }

  mutating func suspend() { suspensions += 1 }

  /// - Returns: nil when there is no suspension to resume.
  mutating func resume() -> Action? {
    guard suspensions > 0 else { return nil }
    suspensions -= 1
    return visitIfDue()
  }

  /// `cancel()`.
  mutating func cancel() -> Action {
    guard !isCancelled else { return .nothing }
    isCancelled = true
    owesCancelHandler = true
    return isActive ? cancelled() : .nothing
  }

  /// The last reference to an active source has gone: unless it was cancelled before, it stops, and no
  /// handler is called any more.
  mutating func abandon() -> Action {
    // A cancel handler that is owed already is still called.
    guard !isCancelled else { return .nothing }
    isCancelled = true
    (hasEvent, owesRegistrationHandler) = (false, false)
    return cancelled()
  }

  private mutating func cancelled() -> Action {
    hasEvent = false
    switch registration {
    case .none:
      registration = .removed
      return visitIfDue()
    case .installed:
      registration = .removing
      return .remove
    case .installing, .removing:
      // Whoever installs will see it; whoever removes goes on.
      return .nothing
    case .removed:
      return visitIfDue()
    }
  }

  /// The backend's `remove` has returned.
  mutating func removed() -> Action {
    registration = .removed
    return visitIfDue()
  }

  /// A visit is wanted whenever there is something to do and none is due.
  private mutating func visitIfDue() -> Action {
    guard !visitIsDue, next != nil else { return .nothing }
    visitIsDue = true
    return .visit
  }

  // MARK: Visits

  /// What a visit does.
  enum Step {
    case registrationHandler
    case eventHandler
    case cancelHandler
  }

  private var next: Step? {
    guard isActive, suspensions == 0 else { return nil }
    if isCancelled {
      // Not before the kernel has let go.
      return registration == .removed && owesCancelHandler ? .cancelHandler : nil
    }
    guard registration == .installed else { return nil }
    if owesRegistrationHandler { return .registrationHandler }
    return hasEvent ? .eventHandler : nil
  }

  /// No event comes any more, and the kernel has let go.
  var isOver: Bool { isCancelled && (registration == .removed || !isActive) }

  /// A visit asks what to do.
  /// - Returns: nil when it is over.
  mutating func takeStep() -> Step? {
    guard let step = next else {
      visitIsDue = false
      return nil
    }
    switch step {
    case .registrationHandler: owesRegistrationHandler = false
    case .eventHandler: hasEvent = false
    case .cancelHandler: owesCancelHandler = false
    }
    return step
  }

  /// A visit has called the event handler, and ends so that the queue's other items get their turn.
  mutating func endVisit() -> Action {
    visitIsDue = false
    return visitIfDue()
  }
}
