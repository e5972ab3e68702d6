internal import CConcourse
internal import Glibc

// Sources for the C interface: created from numbers, with nil for a refusal, and with functions as handlers.

/// A source type of the C interface.
package enum SourceType {
  case dataAdd, dataOr, dataReplace, read, write, signal, timer, interval, process, fileSystemObject,
    memoryPressure
}

extension DispatchSource {
  /// Creates a source, or returns nil for a handle or mask that the type does not accept.
  /// Matching C function: `dispatch_source_create`.
  package static func make(
    _ type: SourceType, handle: UInt, mask: UInt, queue: DispatchQueue?
  ) -> DispatchSource? {
    let number = Int32(exactly: handle)
    // Kinds built here differ from those of the Swift factories: they accept other arguments, and need no cast.
    func source(
      _ kind: SourceKind, mask: UInt = 0, merging: SourceCore.Merging, _ backend: SourceBackend
    ) -> DispatchSource {
      DispatchSource(
        SourceCore(
          kind: kind, handle: handle, mask: mask, merging: merging, target: queue, backend: backend))
    }
    switch type {
    case .dataAdd:
      guard handle == 0, mask == 0 else { return nil }
      return source(.userDataAdd, merging: .add, UserDataBackend())
    case .dataOr:
      guard handle == 0, mask == 0 else { return nil }
      return source(.userDataOr, merging: .or, UserDataBackend())
    case .dataReplace:
      guard handle == 0, mask == 0 else { return nil }
      return source(.userDataReplace, merging: .replace, UserDataBackend())
    case .read:
      guard let number, mask == 0 else { return nil }
      return source(.read, merging: .replace, ReadBackend(number))
    case .write:
      guard let number, mask == 0 else { return nil }
      return source(.write, merging: .replace, WriteBackend(number))
    case .signal:
      guard let number, number > 0, number < concourse_signal_limit(), number != SIGKILL, number != SIGSTOP,
        mask == 0
      else { return nil }
      return source(.signal, merging: .add, SignalBackend(number))
    case .timer:
      guard handle == 0, mask & ~1 == 0 else { return nil }
      return source(.timer, mask: mask, merging: .add, TimerBackend())
    case .interval: return interval(milliseconds: handle, queue)
    case .process:
      guard let identifier = number else { return nil }
      return try? makeProcess(identifier, ProcessEvent(rawValue: mask), queue).get()
    case .fileSystemObject:
      guard let descriptor = number else { return nil }
      return try? makeFileSystemObject(descriptor, FileSystemEvent(rawValue: mask), queue).get()
    case .memoryPressure:
      guard handle == 0 else { return nil }
      return try? makeMemoryPressure(MemoryPressureEvent(rawValue: mask), queue).get()
    }
  }

  /// A timer that fires at multiples of its interval, so timers with equal intervals fire together.
  private static func interval(milliseconds: UInt, _ queue: DispatchQueue?) -> DispatchSource? {
    let year: UInt = 366 * 86400 * 1000
    guard milliseconds > 0, milliseconds <= year else { return nil }
    let source = DispatchSource(
      SourceCore(
        kind: .timer, handle: milliseconds, mask: 0, merging: .add, target: queue, backend: TimerBackend()))
    let interval = UInt64(milliseconds) * 1_000_000
    let start = (Clock.uptime() / interval + 1) * interval
    source.program(start: .uptime(start), interval: interval, leeway: interval / 2, "dispatch_source_create")
    return source
  }

  // MARK: Handlers

  /// Sets a block to call for events. Matching C function: `dispatch_source_set_event_handler`.
  package final func setEventHandler(_ block: any ClientBlock) { core.setEventHandler(SourceHandler(block)) }

  /// Matching C function: `dispatch_source_set_cancel_handler`.
  package final func setCancelHandler(_ block: any ClientBlock) {
    core.setCancelHandler(SourceHandler(block))
  }

  /// Matching C function: `dispatch_source_set_registration_handler`.
  package final func setRegistrationHandler(_ block: any ClientBlock) {
    core.setRegistrationHandler(SourceHandler(block))
  }

  /// Sets a function to call for events; nil removes the handler. The function receives the context that the source
  /// has at this call, or at activation if that comes later.
  /// Matching C function: `dispatch_source_set_event_handler_f`.
  package final func setEventHandler(_ function: ContextFunction?) {
    if function != nil { uncountedExtras._withUnsafeGuaranteedRef { $0.settleEventContext() } }
    core.setEventHandler(function.map { SourceHandler($0, objectExtras, settled: true) })
  }

  /// Sets a function to call after cancellation, with the context that the source has then; nil removes the handler.
  /// Matching C function: `dispatch_source_set_cancel_handler_f`.
  package final func setCancelHandler(_ function: ContextFunction?) {
    core.setCancelHandler(handler(function))
  }

  /// Matching C function: `dispatch_source_set_registration_handler_f`.
  package final func setRegistrationHandler(_ function: ContextFunction?) {
    core.setRegistrationHandler(handler(function))
  }

  private final func handler(_ function: ContextFunction?) -> SourceHandler? {
    function.map { SourceHandler($0, objectExtras, settled: false) }
  }

  /// Sets a cancel handler and makes cancellation mandatory: releasing the last reference to an uncancelled source
  /// traps. From activation on, the handlers and the target queue cannot be changed.
  /// Matching C function: `dispatch_source_set_mandatory_cancel_handler`.
  package final func setMandatoryCancelHandler(_ block: any ClientBlock) {
    core.setMandatoryCancelHandler(SourceHandler(block))
  }

  /// As `setMandatoryCancelHandler(_:)` with a block, with a work item instead.
  package final func setMandatoryCancelHandler(_ item: DispatchWorkItem) {
    core.setMandatoryCancelHandler(SourceHandler(item))
  }

  /// Matching C function: `dispatch_source_set_mandatory_cancel_handler_f`.
  package final func setMandatoryCancelHandler(_ function: ContextFunction) {
    core.setMandatoryCancelHandler(handler(function)!)
  }

  /// Cancels the source, as `cancel()` does without the cast. Matching C function: `dispatch_source_cancel`.
  ///
  /// The cancel handler may release the last reference before this call returns, so nothing of the source is touched
  /// here once the visit has been submitted.
  package final func stop() { core.cancel() }

  /// Matching C function: `dispatch_source_cancel_and_wait`.
  package final func cancelAndWait() { core.cancelAndWait() }

  /// Raises the handlers' QoS to at least this class. Traps on an active source.
  /// Matching C function: `dispatch_set_qos_class_floor`.
  package final func setFloor(_ qosClass: DispatchQoS.QoSClass, _ function: StaticString) {
    core.setFloor(QoSLevel(qosClass), function)
  }

  // MARK: Timers and data

  /// The properties of all kinds, as numbers; `DispatchSourceProtocol` documents them.
  package final var rawHandle: UInt { core.handle }
  package final var rawMask: UInt { core.isCancelled ? 0 : core.mask }
  package final var rawData: UInt { core.data }
  package final var wasCancelled: Bool { core.isCancelled }

  /// Programs a timer. An interval beyond `Int64.max` ns (292 years) fires once. Traps on any other source.
  /// Matching C function: `dispatch_source_set_timer`.
  package final func program(start: Deadline, interval: UInt64, leeway: UInt64, _ function: StaticString) {
    guard core.kind == .timer else {
      Trap.clientBug(505, "\(function) on \(core.description), which is not a timer")
    }
    // SAFETY: every timer source has a `TimerBackend`. The backend ignores the call after `cancel`.
    unsafeDowncast(core.backend, to: TimerBackend.self).program(
      TimerSchedule(
        start: start, now: Clock.uptime(), interval: interval > UInt64(Int64.max) ? nil : interval,
        leeway: leeway))
  }

  /// Merges a value into a user data source. A merged value of zero calls no handler. Traps on any other source.
  /// Matching C function: `dispatch_source_merge_data`.
  package final func merge(_ value: UInt) {
    switch core.kind {
    case .userDataAdd, .userDataOr, .userDataReplace:
      core.raise(value)
    case .timer, .signal, .read, .write, .process, .fileSystemObject, .memoryPressure:
      Trap.clientBug(515, "dispatch_source_merge_data on \(core.description), which takes no data")
    }
  }
}
