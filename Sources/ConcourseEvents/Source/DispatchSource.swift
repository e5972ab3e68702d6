/// Calls handlers on a queue when an event occurs: a descriptor becomes readable or writable, a time is reached, a
/// signal arrives, data is merged in, a process ends, a file changes, memory runs short.
///
/// A new source is inactive: set its handlers, then call `activate()`. Handlers of one source never overlap, on any
/// kind of queue. Events that occur while a handler runs, or while the source or its queue is suspended, are merged
/// into one later call. Keep a reference: releasing the last one stops an active source without calling its cancel
/// handler. After `cancel()` the cancel handler runs exactly once, when the last event handler has returned and the
/// kernel no longer watches the descriptor: close the descriptor there. All calls may be made from any thread.
///
/// Matching C type: `dispatch_source_t`.
public class DispatchSource: DispatchObject {
  /// The target, which the core keeps. Clang's thread sanitizer reads it here, as of a queue (CConcourseABI/objects.c).
  private let shownTarget: Atomic<UnsafeMutableRawPointer?>
  let core: SourceCore

  init(_ core: SourceCore) {
    self.core = core
    shownTarget = Atomic(Unmanaged.passUnretained(core.currentTarget).toOpaque())
    super.init(kind: .source)
  }

  deinit {
    uncountedExtrasIfAny?._withUnsafeGuaranteedRef {
      guard $0.hasFinalizer else { return }
      $0.setLastQueue(core.currentTarget)
      // A running or pending handler may still use the context.
      core.retainExtras($0)
    }
    core.abandon()
  }

  /// Sets the queue on which the handlers run, from the next call on; nil means the default global queue.
  /// Matching C function: `dispatch_set_target_queue`.
  /// - Parameter queue: the queue, or nil.
  public override func setTarget(queue: DispatchQueue?) {
    core.setTarget(queue) {
      // ORDERING: relaxed; the sanitizer's read has no partner.
      shownTarget.store(Unmanaged.passUnretained($0).toOpaque(), ordering: .relaxed)
    }
  }

  /// Starts the source; no effect on an active one. The source registers with the kernel during the call.
  /// Matching C function: `dispatch_activate`.
  public override func activate() {
    settleContext()
    core.activate()
  }

  /// Increments the suspension count: no further handler starts until every suspension is resumed.
  /// Matching C function: `dispatch_suspend`.
  public override func suspend() { core.suspend() }

  /// Decrements the suspension count; activates a source that was never activated.
  ///
  /// Traps if there is no suspension to resume. Matching C function: `dispatch_resume`.
  public override func resume() {
    settleContext()
    core.resume()
  }

  /// An event handler function receives the context that the source has when it is activated.
  private final func settleContext() {
    uncountedExtrasIfAny?._withUnsafeGuaranteedRef { if core.isInactive { $0.settleEventContext() } }
  }

  /// A line for debugging: kind and handle.
  public override var description: String { "<\(type(of: self)): \(core.description)>" }
}

// SAFETY: the core is constant and synchronizes itself.
extension DispatchSource: @unchecked Sendable {}

/// `DispatchSourceProtocol.DispatchSourceHandler`, under the name that the toolchain's Dispatch uses.
public typealias DispatchSourceHandler = DispatchSource.DispatchSourceHandler

/// The interface of all sources. Only `DispatchSource` can conform: the members trap when called on another type.
public protocol DispatchSourceProtocol {
  /// A handler of a source. It runs on the source's target queue.
  typealias DispatchSourceHandler = () -> Void

  /// See the extension's member of the same name. This applies to all requirements.
  func setEventHandler(qos: DispatchQoS, flags: DispatchWorkItemFlags, handler: DispatchSourceHandler?)
  /// See the extension.
  func setEventHandler(handler: DispatchWorkItem)
  /// See the extension.
  func setCancelHandler(qos: DispatchQoS, flags: DispatchWorkItemFlags, handler: DispatchSourceHandler?)
  /// See the extension.
  func setCancelHandler(handler: DispatchWorkItem)
  /// See the extension.
  func setRegistrationHandler(qos: DispatchQoS, flags: DispatchWorkItemFlags, handler: DispatchSourceHandler?)
  /// See the extension.
  func setRegistrationHandler(handler: DispatchWorkItem)
  /// See the extension.
  func cancel()
  /// See the extension.
  func resume()
  /// See the extension.
  func suspend()
  /// See the extension.
  var handle: UInt { get }
  /// See the extension.
  var mask: UInt { get }
  /// See the extension.
  var data: UInt { get }
  /// See the extension.
  var isCancelled: Bool { get }
}

extension DispatchSourceProtocol {
  /// Sets the handler to call for events; nil removes it.
  ///
  /// The handler runs on the target queue, one call at a time. It may be changed at any time; a call that has begun
  /// keeps the old handler. Without a handler, events are discarded. Cancellation releases the handler.
  /// - Parameters:
  ///   - qos: the class at which the handler runs; `.unspecified` means that of the target queue.
  ///   - flags: QoS rules; `.barrier` makes the calls barriers on a concurrent target queue.
  ///   - handler: the closure.
  /// Matching C function: `dispatch_source_set_event_handler`.
  public func setEventHandler(
    qos: DispatchQoS = .unspecified, flags: DispatchWorkItemFlags = [], handler: DispatchSourceHandler?
  ) {
    core.setEventHandler(handler.map { SourceHandler($0, qos: qos, flags: flags) })
  }

  /// Sets a work item to execute for events; a cancelled item is skipped.
  /// Matching C function: `dispatch_source_set_event_handler`.
  /// - Parameter handler: the item, executed once for each delivery.
  public func setEventHandler(handler: DispatchWorkItem) { core.setEventHandler(SourceHandler(handler)) }

  /// Sets the handler to call once after `cancel()`; nil removes it. Close the descriptor there.
  ///
  /// The handler runs on the target queue, after the last event handler has returned and the kernel has stopped
  /// watching the descriptor. Matching C function: `dispatch_source_set_cancel_handler`.
  /// - Parameters:
  ///   - qos: The class at which the handler runs; `.unspecified` means that of the target queue.
  ///   - flags: QoS rules; `.barrier` makes the call a barrier on a concurrent target queue.
  ///   - handler: The closure.
  public func setCancelHandler(
    qos: DispatchQoS = .unspecified, flags: DispatchWorkItemFlags = [], handler: DispatchSourceHandler?
  ) {
    core.setCancelHandler(handler.map { SourceHandler($0, qos: qos, flags: flags) })
  }

  /// As `setCancelHandler(qos:flags:handler:)`, with a work item.
  /// Matching C function: `dispatch_source_set_cancel_handler`.
  public func setCancelHandler(handler: DispatchWorkItem) { core.setCancelHandler(SourceHandler(handler)) }

  /// Sets the handler to call once when the source is registered, before any event handler. On a source that is
  /// already registered the handler is called at once. It is never called if the source is cancelled first.
  /// Matching C function: `dispatch_source_set_registration_handler`.
  /// - Parameters:
  ///   - qos: The class at which the handler runs; `.unspecified` means that of the target queue.
  ///   - flags: QoS rules; `.barrier` makes the call a barrier on a concurrent target queue.
  ///   - handler: The closure.
  public func setRegistrationHandler(
    qos: DispatchQoS = .unspecified, flags: DispatchWorkItemFlags = [], handler: DispatchSourceHandler?
  ) {
    core.setRegistrationHandler(handler.map { SourceHandler($0, qos: qos, flags: flags) })
  }

  /// As `setRegistrationHandler(qos:flags:handler:)`, with a work item.
  /// Matching C function: `dispatch_source_set_registration_handler`.
  public func setRegistrationHandler(handler: DispatchWorkItem) {
    core.setRegistrationHandler(SourceHandler(handler))
  }

  /// Starts the source; no effect on an active one. Matching C function: `dispatch_activate`.
  public func activate() { source.activate() }

  /// Stops the source for good. No event handler begins after this call, and the cancel handler runs once when a
  /// running event handler has returned. A second call has no effect. On a suspended source the cancel handler waits
  /// for the resume, on an inactive one for the activation. Matching C function: `dispatch_source_cancel`.
  public func cancel() { core.cancel() }

  /// Decrements the suspension count; activates a source that was never activated.
  /// Matching C function: `dispatch_resume`.
  public func resume() { source.resume() }

  /// Increments the suspension count: events are merged until every suspension is resumed.
  /// Matching C function: `dispatch_suspend`.
  public func suspend() { source.suspend() }

  /// See `DispatchSource.handle`.
  public var handle: UInt { source.handle }

  /// See `DispatchSource.mask`.
  public var mask: UInt { source.mask }

  /// See `DispatchSource.data`.
  public var data: UInt { source.data }

  /// Whether `cancel()` has been called. Matching C function: `dispatch_source_testcancel`.
  public var isCancelled: Bool { core.isCancelled }

  var source: DispatchSource {
    // Test this case first: a cast of an unknown type costs more than most operations of a source.
    if Self.self == DispatchSource.self {
      // SAFETY: the types are the same.
      return withUnsafePointer(to: self) { UnsafeRawPointer($0).load(as: DispatchSource.self) }
    }
    guard let source = self as? DispatchSource else {
      Trap.clientBug(
        516,
        "\(type(of: self)) conforms to DispatchSourceProtocol; only DispatchSource can")
    }
    return source
  }

  var core: SourceCore { source.core }
}

/// `DispatchSource` conforms to the protocols of all kinds; the protocol that a factory returns states the kind.
///
/// The protocols of file-system, process and memory pressure sources require `data`, `mask` and `handle` with their
/// own types. Members of the class win over those, so that the class has one type for each.
extension DispatchSource: DispatchSourceProtocol {
  /// The object that the source observes: a descriptor, a signal number, a process id; 0 for kinds that have none.
  /// Matching C function: `dispatch_source_get_handle`.
  public var handle: UInt { core.handle }

  /// The requested events; 0 for kinds without a choice, and after cancellation.
  /// Matching C function: `dispatch_source_get_mask`.
  public var mask: UInt { core.isCancelled ? 0 : core.mask }

  /// The events since the last call of the event handler; defined only inside the handler. For a read source an
  /// estimate of the bytes to read, 0 at the end of the file; for a timer the elapsed intervals; for a signal the
  /// deliveries.
  /// Matching C function: `dispatch_source_get_data`.
  public var data: UInt { core.data }
}

extension DispatchSourceProtocol {
  /// Calls `observer` once when the source has been cancelled, before its cancel handler. Calls it at once if the
  /// source was cancelled before.
  package func whenCancelled(_ observer: @escaping () -> Void) { core.setEndObserver(observer) }
}
