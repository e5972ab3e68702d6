/// What tells an operation that its descriptor is ready: at most one operation of a direction waits at a
/// time.
final class ReadinessWatch {
  private let lock = Lock()
  // GUARDED BY `lock`.
  private var waiting: IOOperation?
  private var isInstalled = false
  // SAFETY: written once by `init`.
  private nonisolated(unsafe) var watch: FileWatch!

  init(_ descriptor: Int32, _ interest: FileWatch.Interest) {
    watch = FileWatch(descriptor: descriptor, interest: interest, owner: self)
  }

  /// Wakes `operation` once when the descriptor is ready.
  /// - Returns: 0, or the errno if the descriptor is none any more.
  func await(_ operation: IOOperation) -> Int32 {
    // What waited before is let go after unlocking: it may take clients' objects with it.
    let (isFirst, stale) = lock.withLock { () -> (Bool, IOOperation?) in
      defer { (waiting, isInstalled) = (operation, true) }
      return (!isInstalled, waiting)
    }
    defer { withExtendedLifetime(stale) {} }
    if isFirst { return watch.install() }
    watch.rearm()
    return 0
  }

  /// The kernel lets go of the descriptor.
  func remove() {
    let stale = lock.withLock { () -> IOOperation? in
      defer { waiting = nil }
      return waiting
    }
    watch.remove()
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
