internal import CConcourse
internal import Glibc

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

  /// Whether the descriptor never blocks.
  var isAlwaysReady: Bool { EventLoop.files.mode(of: self) == .alwaysReady }

  func notifyOwner() { owner.fileIsReady(self) }
}

// SAFETY: see the guards above; the rest is constant.
extension FileWatch: @unchecked Sendable {}

// MARK: - What the kernel knows

/// One descriptor in the kernel's event queue, for all watches that share it.
///
/// Each watch has its own direction, so cancelling one direction never cancels another. Registrations are reused; the
/// generation identifies late events of an earlier use.
final class FileRegistration {
  let index: Int
  let lock = Lock(.fileRegistration)

  // GUARDED BY `lock`.
  private(set) var generation: UInt32 = 0
  private(set) var descriptor: Int32 = -1
  private(set) var isInKernel = false
  /// Whether the kernel was last asked to report changes only. It then does not disarm the descriptor after an event.
  private var staysArmed = false
  private var first: FileWatch?

  init(index: Int) { self.index = index }

  /// Begins a use for `descriptor`.
  func begin(_ descriptor: Int32) { self.descriptor = descriptor }

  /// Ends the use: events in flight become stale.
  func end() {
    generation &+= 1
    descriptor = -1
    isInKernel = false
  }

  var isEmpty: Bool { first == nil }

  func append(_ watch: FileWatch) {
    watch.next = first
    first = watch
    watch.registration = self
  }

  func detach(_ watch: FileWatch) {
    if first === watch {
      first = watch.next
    } else {
      var before = first
      while let link = before, link.next !== watch { before = link.next }
      before?.next = watch.next
    }
    watch.next = nil
    watch.registration = nil
  }

  /// Detaches the armed watches.
  func detachArmed() -> [FileWatch] {
    var armed: [FileWatch] = []
    var link = first
    while let watch = link {
      if watch.isArmed { armed.append(watch) }
      link = watch.next
    }
    for watch in armed { detach(watch) }
    return armed
  }

  /// The events that the armed watches wait for, and the trigger mode.
  private var wanted: Readiness {
    var wanted = Readiness()
    var changesOnly = true
    var link = first
    while let watch = link {
      if watch.isArmed {
        wanted.insert(watch.interest.readiness)
        if !watch.waitsForChange { changesOnly = false }
      }
      link = watch.next
    }
    return wanted.isEmpty ? [] : wanted.union(changesOnly ? .edge : .oneShot)
  }

  /// Asks the kernel for the wanted events.
  /// - Returns: 0, or the errno negated.
  func update(in poller: Poller) -> Int {
    let interest = wanted
    if isInKernel {
      // With no armed watch, the registration has fired, or is about to be re-armed.
      if interest.isEmpty { return 0 }
      let failure = poller.control(.modify, descriptor, interest, index: index, generation: generation)
      // The descriptor was closed, and the number now means another file.
      guard failure == -Int(ENOENT) else {
        if failure == 0 { staysArmed = interest.contains(.edge) }
        return failure
      }
      isInKernel = false
    }
    var failure = poller.control(.add, descriptor, interest, index: index, generation: generation)
    if failure == -Int(EEXIST) {
      // The client closed the descriptor in an earlier use, but a duplicate kept its entry in the kernel's queue: take
      // over that entry.
      failure = poller.control(.modify, descriptor, interest, index: index, generation: generation)
    }
    isInKernel = failure == 0
    staysArmed = isInKernel && interest.contains(.edge)
    return failure
  }

  /// Removes the descriptor from the kernel's queue.
  func leaveKernel(_ poller: Poller) {
    guard isInKernel else { return }
    isInKernel = false
    // EBADF or ENOENT: the client has closed it, and the kernel removed it then.
    _ = poller.control(.remove, descriptor, [], index: index, generation: generation)
  }

  /// Disarms the watches that an event concerns.
  /// - Returns: those watches.
  func take(_ ready: Readiness, generation: UInt32, from poller: Poller) -> Delivery {
    lock.lock()
    defer { lock.unlock() }
    var delivery = Delivery()
    guard generation == self.generation else { return delivery }
    let forAll = !ready.isDisjoint(with: [.error, .hangUp])
    var link = first
    while let watch = link {
      if watch.isArmed && (forAll || ready.contains(watch.interest.readiness)) {
        if !watch.waitsForChange { watch.isArmed = false }
        delivery.append(watch)
      }
      link = watch.next
    }
    // The kernel has disarmed the descriptor unless all watches wait for changes. Re-arm it for the watches that are
    // still armed.
    if !staysArmed && !wanted.isEmpty { delivery.failure = update(in: poller) }
    return delivery
  }

  /// The watches to notify of an event, mostly one.
  struct Delivery {
    private var first: FileWatch?
    private var rest: [FileWatch] = []
    /// The negated errno of re-arming the other watches; 0 on success.
    var failure = 0

    mutating func append(_ watch: FileWatch) {
      if first == nil { first = watch } else { rest.append(watch) }
    }

    func notifyOwners() {
      first?.notifyOwner()
      for watch in rest { watch.notifyOwner() }
    }
  }
}

// SAFETY: the index is constant, the rest is GUARDED BY `lock`.
extension FileRegistration: @unchecked Sendable {}
