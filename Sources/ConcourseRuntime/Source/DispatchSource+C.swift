internal import CConcourse
internal import Glibc

// Sources for the C interface: made from numbers, refused with nil, with functions for handlers.

/// A source type of the C interface.
package enum SourceType {
  case dataAdd, dataOr, dataReplace, read, write, signal, timer, interval, process, fileSystemObject,
    memoryPressure
}

extension DispatchSource {
  /// A source, or nil for a handle or mask that the type refuses. Matching C function: `dispatch_source_create`.
  package static func make(
    _ type: SourceType, handle: UInt, mask: UInt, queue: DispatchQueue?
  ) -> DispatchSource? {
    let descriptor = Int32(exactly: handle)
    switch type {
    case .dataAdd: return userData(.userDataAdd, .add, handle, mask, queue)
    case .dataOr: return userData(.userDataOr, .or, handle, mask, queue)
    case .dataReplace: return userData(.userDataReplace, .replace, handle, mask, queue)
    case .read:
      guard let descriptor, mask == 0 else { return nil }
      return makeReadSource(fileDescriptor: descriptor, queue: queue) as? DispatchSource
    case .write:
      guard let descriptor, mask == 0 else { return nil }
      return makeWriteSource(fileDescriptor: descriptor, queue: queue) as? DispatchSource
    case .signal:
      guard let signal = descriptor, signal > 0, signal < concourse_signal_limit(), signal != SIGKILL,
        signal != SIGSTOP, mask == 0
      else { return nil }
      return makeSignalSource(signal: signal, queue: queue) as? DispatchSource
    case .timer:
      guard handle == 0, mask & ~1 == 0 else { return nil }
      return makeTimerSource(flags: TimerFlags(rawValue: mask), queue: queue) as? DispatchSource
    case .interval: return interval(milliseconds: handle, queue)
    case .process:
      guard let identifier = descriptor else { return nil }
      return try? makeProcess(identifier, ProcessEvent(rawValue: mask), queue).get()
    case .fileSystemObject:
      guard let descriptor else { return nil }
      return try? makeFileSystemObject(descriptor, FileSystemEvent(rawValue: mask), queue).get()
    case .memoryPressure:
      guard handle == 0 else { return nil }
      return try? makeMemoryPressure(MemoryPressureEvent(rawValue: mask), queue).get()
    }
  }

  private static func userData(
    _ kind: SourceKind, _ merging: SourceCore.Merging, _ handle: UInt, _ mask: UInt, _ queue: DispatchQueue?
  ) -> DispatchSource? {
    guard handle == 0, mask == 0 else { return nil }
    return DispatchSource(
      SourceCore(
        kind: kind, handle: 0, mask: 0, merging: merging, target: queue, backend: UserDataBackend()))
  }

  /// A timer of a fixed interval, whose times are multiples of it: those of one interval fire together.
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

  /// Sets a function to call with the context that the source has then; nil removes the handler. Matching C
  /// function: `dispatch_source_set_event_handler_f`.
  package final func setEventHandler(_ function: ContextFunction?) { core.setEventHandler(handler(function)) }

  /// Matching C function: `dispatch_source_set_cancel_handler_f`.
  package final func setCancelHandler(_ function: ContextFunction?) {
    core.setCancelHandler(handler(function))
  }

  /// Matching C function: `dispatch_source_set_registration_handler_f`.
  package final func setRegistrationHandler(_ function: ContextFunction?) {
    core.setRegistrationHandler(handler(function))
  }

  /// The extras, and with them the context, outlive the source by as long as a handler may be called.
  private final func handler(_ function: ContextFunction?) -> SourceHandler? {
    guard let function else { return nil }
    let extras = objectExtras
    return SourceHandler({ function(extras.currentContext) }, qos: .unspecified, flags: [])
  }

  // MARK: Timers and data

  /// What all kinds have, as numbers; `DispatchSourceProtocol` says what they mean.
  package final var rawHandle: UInt { core.handle }
  package final var rawMask: UInt { core.isCancelled ? 0 : core.mask }
  package final var rawData: UInt { core.data }
  package final var wasCancelled: Bool { core.isCancelled }

  /// Programs a timer; an interval of at least 292 years means none. Traps on any other source. Matching C function:
  /// `dispatch_source_set_timer`.
  package final func program(start: Deadline, interval: UInt64, leeway: UInt64, _ function: StaticString) {
    guard let backend = core.backend as? TimerBackend else {
      Trap.clientBug("\(function) on \(core.description), which is no timer")
    }
    guard !core.isCancelled else { return }
    backend.program(
      TimerSchedule(
        start: start, now: Clock.uptime(), interval: interval > UInt64(Int64.max) ? nil : interval,
        leeway: min(leeway, 60_000_000_000)),
      for: core)
  }

  /// Merges a value into a source of user data; a result of zero calls no handler. Traps on any other source. Matching C function:
  /// `dispatch_source_merge_data`.
  package final func merge(_ value: UInt) {
    switch core.kind {
    case .userDataAdd, .userDataOr, .userDataReplace:
      if !core.isCancelled { core.raise(value) }
    case .timer, .signal, .read, .write, .process, .fileSystemObject, .memoryPressure:
      Trap.clientBug("dispatch_source_merge_data on \(core.description), which takes no data")
    }
  }
}
