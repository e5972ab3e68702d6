/// Calls its handlers on a queue when something happens outside: a descriptor becomes readable or
/// writable, a time comes, a signal arrives, data is merged in, a process ends, a file changes, memory
/// runs short.
///
/// A source is born inactive: set its handlers, then call `activate()`. Handlers of one source never
/// overlap, on any kind of queue; events that come while a handler runs, or while the source or its queue
/// is suspended, are merged into one later call. Keep a reference: dropping the last one stops an active
/// source without calling its cancel handler. After `cancel()` the cancel handler runs exactly once, when
/// the last event handler has returned and the kernel has let go of the descriptor: close it there. All
/// calls may be made from any thread.
///
/// Matching C type: `dispatch_source_t`.
public class DispatchSource: DispatchObject {
  let core: SourceCore

  init(_ core: SourceCore) {
    self.core = core
    super.init(kind: .source)
  }

  deinit {
    uncountedExtrasIfAny?._withUnsafeGuaranteedRef {
      guard $0.hasFinalizer else { return }
      $0.setLastQueue(core.currentTarget)
      // A handler that runs, or is still to be called, may use the context.
      core.keep($0)
    }
    core.abandon()
  }

  /// Sets the queue on which the handlers run, from the next call on; nil means the default global queue.
  /// Matching C function: `dispatch_set_target_queue`.
  public override func setTarget(queue: DispatchQueue?) { core.setTarget(queue) }

  /// Lets the source start; no effect on an active one. Registration with the kernel happens during the
  /// call. Matching C function: `dispatch_activate`.
  public override func activate() {
    settleContext()
    core.activate()
  }

  /// Adds one to the suspension count: no further handler starts until every suspension is resumed.
  /// Matching C function: `dispatch_suspend`.
  public override func suspend() { core.suspend() }

  /// Takes one from the suspension count; on a source that was never activated, activates it.
  ///
  /// Traps when there is no suspension to resume. Matching C function: `dispatch_resume`.
  public override func resume() {
    settleContext()
    core.resume()
  }

  /// A function for events gets the context of the moment at which the source starts.
  private final func settleContext() {
    uncountedExtrasIfAny?._withUnsafeGuaranteedRef { if core.isInactive { $0.settleEventContext() } }
  }

  /// A line for debugging: kind and handle.
  public override var description: String { "<\(type(of: self)): \(core.description)>" }
}

// SAFETY: the core is constant and guards itself.
extension DispatchSource: @unchecked Sendable {}

/// `DispatchSourceProtocol.DispatchSourceHandler` under the name that the toolchain's Dispatch has for it.
public typealias DispatchSourceHandler = DispatchSource.DispatchSourceHandler
