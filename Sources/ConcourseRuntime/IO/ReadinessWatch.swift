/// What tells an operation that its descriptor is ready: at most one operation of a direction waits at a
/// time.
final class ReadinessWatch {
  private let lock = Lock()
  // GUARDED BY `lock`.
  private var waiting: IOOperation?
  /// Made by the first `await`; holds this object until `remove`.
  private var watch: FileWatch?
  private let descriptor: Int32
  private let interest: FileWatch.Interest

  init(_ descriptor: Int32, _ interest: FileWatch.Interest) {
    self.descriptor = descriptor
    self.interest = interest
  }

  /// Wakes `operation` once when the descriptor is ready.
  /// - Returns: 0, or the errno if the descriptor is none any more.
  func await(_ operation: IOOperation) -> Int32 {
    // What waited before is let go after unlocking: it may take clients' objects with it.
    let (known, made, stale) = lock.withLock { () -> (FileWatch?, FileWatch?, IOOperation?) in
      defer { waiting = operation }
      if let watch { return (watch, nil, waiting) }
      watch = FileWatch(descriptor: descriptor, interest: interest, owner: self)
      return (nil, watch, waiting)
    }
    defer { withExtendedLifetime(stale) {} }
    known?.rearm()
    return made?.install() ?? 0
  }

  /// The kernel lets go of the descriptor.
  func remove() {
    let (watch, stale) = lock.withLock { () -> (FileWatch?, IOOperation?) in
      defer { (self.watch, waiting) = (nil, nil) }
      return (self.watch, waiting)
    }
    watch?.remove()
    withExtendedLifetime(stale) {}
  }
}

extension ReadinessWatch: FileWatchOwner {
  func fileIsReady(_ watch: FileWatch) {
    let operation = lock.withLock { () -> IOOperation? in
      defer { waiting = nil }
      return waiting
    }
    operation?.wake()
  }
}

// SAFETY: see the guards above.
extension ReadinessWatch: @unchecked Sendable {}
