/// The state of a source, and the action that each transition requires. Pure: it decides, `SourceCore` acts.
///
/// A *visit* is the item that a source submits to its target queue. At most one visit is pending or running, so
/// handlers never overlap, on any kind of queue.
struct SourceState {
  /// The state of the backend. That of a cancelled source changes next when `remove` has returned.
  private enum Registration {
    /// `install` has not been called.
    case none
    /// `install` runs on the activating thread.
    case installing
    case installed
    /// `remove` has returned, or was never needed.
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

  /// What the caller must do after releasing the lock.
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
    if isCancelled { return .remove }
    registration = .installed
    return visitIfDue()
  }

  /// The backend has an event.
  mutating func raise() -> Action {
    guard !isCancelled else { return .nothing }
    hasEvent = true
    return visitIfDue()
  }

  mutating func discardEvents() { hasEvent = false }

  /// A registration handler has been set or removed.
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

  /// The last reference to an active source is gone: unless it was cancelled before, the source stops, and calls no
  /// handler.
  mutating func abandon() -> Action {
    // A pending cancel handler is still called.
    guard !isCancelled else { return .nothing }
    isCancelled = true
    return cancelled()
  }

  /// Called once, when `isCancelled` has been set.
  private mutating func cancelled() -> Action {
    switch registration {
    case .none, .removed:
      registration = .removed
      return visitIfDue()
    // The installing thread will see the cancellation.
    case .installing: return .nothing
    case .installed: return .remove
    }
  }

  /// The backend's `remove` has returned.
  mutating func removed() -> Action {
    registration = .removed
    return visitIfDue()
  }

  /// Requests a visit if there is something to do and no visit is due.
  private mutating func visitIfDue() -> Action {
    guard !visitIsDue, next != nil else { return .nothing }
    visitIsDue = true
    return .visit
  }

  // MARK: Visits

  enum Step {
    case registrationHandler
    case eventHandler
    case cancelHandler
  }

  private var next: Step? {
    guard isActive, suspensions == 0 else { return nil }
    if isCancelled {
      // The cancel handler runs only after the backend's `remove`.
      return registration == .removed && owesCancelHandler ? .cancelHandler : nil
    }
    guard registration == .installed else { return nil }
    if owesRegistrationHandler { return .registrationHandler }
    return hasEvent ? .eventHandler : nil
  }

  /// No event can follow, and the backend is removed or was never installed.
  var isOver: Bool { isCancelled && (registration == .removed || !isActive) }

  /// Takes the next step of a running visit.
  /// - Returns: nil when the visit has ended.
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

  /// A visit has called the event handler. The visit ends there, so that the queue's other items get their turn.
  mutating func endVisit() -> Action {
    visitIsDue = false
    return visitIfDue()
  }
}
