/// The owner of a `FileWatch`, notified when the descriptor is ready.
protocol FileWatchOwner: AnyObject, Sendable {
  /// `watch` is ready, or its descriptor failed or was hung up. It is silent until `rearm`.
  ///
  /// Called on a thread that polls, or on the thread that calls `install` or `rearm`; no lock is held. May
  /// come once more after `remove`.
  func fileIsReady(_ watch: FileWatch)
}

/// An owner's interest in one direction of a descriptor.
///
/// Notifies its owner once and then waits for `rearm`. Several watches may share a descriptor. A watch keeps its owner
/// alive, so an owner that ends calls `remove` and drops the watch.
final class FileWatch {
  /// What to wait for.
  enum Interest {
    case read, write, priority

    var readiness: Readiness {
      switch self {
      case .read: .readable
      case .write: .writable
      case .priority: .priority
      }
    }
  }

  /// How the descriptor is watched; decided by `install`.
  enum Mode {
    /// Not installed, removed, or not a descriptor: silent.
    case none
    /// The kernel reports readiness.
    case kernel
    /// The kernel refuses to watch it because it never blocks (regular files, /dev/null): always ready.
    case alwaysReady
    /// The kernel refuses for another reason, such as want of memory: polled at intervals.
    case sampled
  }

  let descriptor: Int32
  let interest: Interest
  private let owner: FileWatchOwner

  // GUARDED BY the lock of `registration` while there is one, else by the table's lock.
  var mode = Mode.none
  var isArmed = false
  /// Whether it is notified of changes only, and stays armed.
  var waitsForChange = false
  var next: FileWatch?
  var registration: FileRegistration?

  init(descriptor: Int32, interest: Interest, owner: FileWatchOwner) {
    self.descriptor = descriptor
    self.interest = interest
    self.owner = owner
  }

  /// Starts watching, armed. Call once.
  /// - Returns: 0, or EBADF if the descriptor is not open: the watch then stays silent.
  @discardableResult
  func install() -> Int32 { EventLoop.files.install(self) }

  /// Asks for the next notification, which comes at once if the descriptor is still ready. No effect after `remove`.
  /// - Returns: 0, or EBADF if the descriptor was closed: the watch then stays silent.
  @discardableResult
  func rearm() -> Int32 { EventLoop.files.rearm(self) }

  /// Asks for a notification of each change until `rearm`, for a descriptor that stays ready without news.
  func rearmForChange() { EventLoop.files.rearm(self, forChange: true) }

  /// Stops watching. On return the kernel has released the descriptor.
  func remove() { EventLoop.files.remove(self) }

  /// Whether the kernel reports readiness, and changes.
  var isInKernel: Bool { EventLoop.files.mode(of: self) == .kernel }

  /// Whether the descriptor never blocks.
  var isAlwaysReady: Bool { EventLoop.files.mode(of: self) == .alwaysReady }

  func notifyOwner() { owner.fileIsReady(self) }
}

// SAFETY: see the guards above; the rest is constant.
extension FileWatch: @unchecked Sendable {}
