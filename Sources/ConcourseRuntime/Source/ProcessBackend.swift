internal import Glibc

/// Listens to one process: its exit through `ProcessExit`, its forks and execs through `ProcessConnector`.
final class ProcessBackend {
  private let identifier: pid_t
  private let mask: DispatchSource.ProcessEvent
  private let exit: ProcessExit?
  private let lock = Lock()
  // GUARDED BY `lock`.
  private var source: SourceCore?
  private var holdsConnector: Bool

  private static let announced: DispatchSource.ProcessEvent = [.fork, .exec]

  /// A backend, or why there can be none.
  static func make(
    identifier: pid_t, mask: DispatchSource.ProcessEvent
  ) -> Result<ProcessBackend, SourceRefusal> {
    let factory = "makeProcessSource(identifier: \(identifier))"
    guard identifier > 0 else {
      return .failure(SourceRefusal("\(factory): a process identifier is above 0"))
    }
    // Asked only when needed: it takes some system calls.
    var connector = Int32(0)
    if !mask.isDisjoint(with: announced) { connector = ProcessConnector.shared.acquire() }
    let observable: DispatchSource.ProcessEvent = connector == 0 ? [.exit, .fork, .exec] : .exit
    let refusal = SourceMask.refusal(
      of: mask.rawValue, observable: observable.rawValue, names: DispatchSource.ProcessEvent.names,
      in: factory,
      because: connector == 0
        ? "Linux tells no process of the signals of another"
        : "the kernel refuses its process events to this process (errno \(connector))")
    if let refusal {
      if connector == 0 && !mask.isDisjoint(with: announced) { ProcessConnector.shared.release() }
      return .failure(refusal)
    }
    return .success(ProcessBackend(identifier: identifier, mask: mask))
  }

  /// Call with the connector acquired, if the mask needs it.
  private init(identifier: pid_t, mask: DispatchSource.ProcessEvent) {
    self.identifier = identifier
    self.mask = mask
    exit = mask.contains(.exit) ? ProcessExit(identifier: identifier) : nil
    holdsConnector = !mask.isDisjoint(with: Self.announced)
  }

  deinit {
    // Never installed, hence never removed.
    if holdsConnector { ProcessConnector.shared.release() }
  }
}

extension ProcessBackend: SourceBackend {
  func install(for source: SourceCore) {
    lock.withLock { self.source = source }
    if lock.withLock({ holdsConnector }) { ProcessConnector.shared.add(self, for: identifier) }
    // Until `end`, which lets go of the closure.
    exit?.begin { [self] in processChanged(.exit) }
  }

  func remove() {
    exit?.end()
    let held = lock.withLock { () -> Bool in
      defer { holdsConnector = false }
      return holdsConnector
    }
    if held {
      ProcessConnector.shared.remove(self, for: identifier)
      ProcessConnector.shared.release()
    }
    // Released outside the lock.
    let last = lock.withLock { () -> SourceCore? in
      defer { source = nil }
      return source
    }
    withExtendedLifetime(last) {}
  }
}

extension ProcessBackend: ProcessListener {
  func processChanged(_ events: DispatchSource.ProcessEvent) {
    let wanted = events.intersection(mask)
    guard !wanted.isEmpty, let source = lock.withLock({ source }) else { return }
    source.raise(wanted.rawValue)
  }
}

// SAFETY: the guards above; the rest is constant.
extension ProcessBackend: @unchecked Sendable {}
