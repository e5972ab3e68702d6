internal import CConcourse
internal import Glibc

/// Who is told that a descriptor is ready.
protocol FileWatchOwner: AnyObject, Sendable {
  /// `watch` is ready, or its descriptor failed or was hung up; it is silent now until `rearm`.
  ///
  /// Called on a thread that polls, or on the thread that calls `install` or `rearm`; no lock is held. May
  /// come once more after `remove`.
  func fileIsReady(_ watch: FileWatch)
}

/// One party's interest in one direction of one descriptor.
///
/// Tells its owner once and then waits for `rearm`. Several watches may share a descriptor. A watch keeps its
/// owner alive: one that is not to live for ever calls `remove` and drops the watch when it has ended.
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

  /// How the descriptor can be watched; decided by `install`.
  enum Road {
    /// Not installed, or removed, or the descriptor is none: silent.
    case none
    /// The kernel tells.
    case kernel
    /// The kernel refuses to watch it because it never blocks (regular files, /dev/null): always ready.
    case alwaysReady
    /// For want of memory or descriptors it must be looked at again and again.
    case sampled
  }

  let descriptor: Int32
  let interest: Interest
  private let owner: FileWatchOwner

  // GUARDED BY the lock of `registration` while there is one, else by the table's lock.
  var road = Road.none
  var isArmed = false
  /// Whether it is told of changes only, and stays armed.
  var waitsForChange = false
  var next: FileWatch?
  var registration: FileRegistration?

  init(descriptor: Int32, interest: Interest, owner: FileWatchOwner) {
    self.descriptor = descriptor
    self.interest = interest
    self.owner = owner
  }

  /// Begins to watch, armed. To be called once.
  /// - Returns: 0, or the errno for a descriptor that is none (EBADF): the watch then stays silent.
  @discardableResult
  func install() -> Int32 { EventLoop.files.install(self) }

  /// Asks to be told again, at once if the descriptor is ready still. Without effect after `remove`.
  func rearm() { EventLoop.files.rearm(self) }

  /// Asks to be told of changes only, and of each of them until `rearm`: for a descriptor that stays
  /// ready without having anything to tell.
  func rearmForChange() { EventLoop.files.rearm(self, forChange: true) }

  /// Ends watching: the kernel has let go of the descriptor on return.
  func remove() { EventLoop.files.remove(self) }

  /// Whether the kernel will never say that this descriptor is not ready.
  var isAlwaysReady: Bool { EventLoop.files.road(of: self) == .alwaysReady }

  func tellOwner() { owner.fileIsReady(self) }
}

// SAFETY: see the guards above; the rest is constant.
extension FileWatch: @unchecked Sendable {}
