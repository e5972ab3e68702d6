internal import CConcourse
internal import Glibc

/// All watched descriptors of the process.
///
/// Lock order: the table's lock before a registration's. Events and `rearm` find their registration under the table's
/// lock, release it, and then take the registration's.
final class WatchTable {
  let lock = Lock(.watchTable)
  // GUARDED BY `lock`.
  private var registrations: [FileRegistration] = []
  private var free: [FileRegistration] = []
  private var byDescriptor: [Int32: FileRegistration] = [:]
  /// The watches in mode `sampled`, and the timer that polls them (WatchTable+Sampling.swift).
  var sampled: [FileWatch] = []
  var sampler: LoopTimer?
  /// Whether the timer is set.
  var isSamplerSet = false

  func install(_ watch: FileWatch) -> Int32 {
    Runtime.requireThreads("activating a source")
    let poller = EventLoop.shared.begin()
    lock.lockPatiently()
    var failure = join(watch, poller)
    var neverBlocks = false
    if failure == EPERM {
      // Without the lock, which every delivery needs: the file may be on a server, which lets the thread wait.
      lock.unlock()
      neverBlocks = BlockedSection.run { !Self.canBlock(watch.descriptor) }
      lock.lockPatiently()
      failure = join(watch, poller)
    }
    switch failure {
    case 0:
      watch.mode = .kernel
    case EPERM where neverBlocks:
      watch.mode = .alwaysReady
      watch.isArmed = true
    case EBADF:
      watch.mode = .none
    default:
      // No descriptors, no memory, no room in the kernel's table: go on more slowly.
      watch.mode = .sampled
      watch.isArmed = true
      sampled.append(watch)
    }
    let mode = watch.mode
    lock.unlock()
    switch mode {
    case .alwaysReady: notifyAtOnce(watch)
    case .sampled:
      Self.reportSampling(failure)
      scheduleSampling()
    case .none, .kernel: break
    }
    return failure == EBADF ? EBADF : 0
  }

  /// Whether a descriptor is of a kind that can block: then a sandbox has refused to watch it.
  private static func canBlock(_ descriptor: Int32) -> Bool {
    var status = stat()
    guard System.status(of: descriptor, &status) == 0 else { return false }
    // 0: an eventfd, inotify or a pidfd, for example.
    return [S_IFIFO, S_IFSOCK, 0].contains(status.st_mode & S_IFMT)
  }

  /// Adds a watch to the registration of its descriptor. Call under the lock.
  /// - Returns: 0 or the errno.
  func join(_ watch: FileWatch, _ poller: Poller?) -> Int32 {
    guard watch.descriptor >= 0 else { return EBADF }
    guard let poller else { return EMFILE }
    let registration = registration(for: watch.descriptor)
    registration.lock.lock()
    defer { registration.lock.unlock() }
    registration.append(watch)
    watch.isArmed = true
    let failure = Int32(-registration.update(in: poller))
    if failure != 0 {
      watch.isArmed = false
      registration.detach(watch)
      retireIfEmpty(registration)
    }
    return failure
  }

  private func registration(for descriptor: Int32) -> FileRegistration {
    if let known = byDescriptor[descriptor] { return known }
    let registration: FileRegistration
    if let unused = free.popLast() {
      registration = unused
    } else {
      registration = FileRegistration(index: registrations.count + Poller.firstFile)
      registrations.append(registration)
    }
    registration.lock.withLock { registration.begin(descriptor) }
    byDescriptor[descriptor] = registration
    return registration
  }

  /// Call under both locks.
  func retireIfEmpty(_ registration: FileRegistration) {
    guard registration.isEmpty else { return }
    byDescriptor[registration.descriptor] = nil
    registration.end()
    free.append(registration)
  }

  func remove(_ watch: FileWatch) {
    lock.lockPatiently()
    defer { lock.unlock() }
    switch watch.mode {
    case .kernel:
      guard let registration = watch.registration, let poller = EventLoop.shared.pollerIfAny else { break }
      registration.lock.lock()
      registration.detach(watch)
      if registration.isEmpty {
        registration.leaveKernel(poller)
        retireIfEmpty(registration)
      }
      registration.lock.unlock()
    case .sampled:
      sampled.removeAll { $0 === watch }
    case .none, .alwaysReady:
      break
    }
    watch.mode = .none
    watch.isArmed = false
  }

  /// - Returns: 0, or EBADF if the descriptor was closed.
  @discardableResult
  func rearm(_ watch: FileWatch, forChange: Bool = false) -> Int32 {
    if let failure = rearmInKernel(watch, forChange) { return failure == -Int(EBADF) ? EBADF : 0 }
    // The other modes do not report changes.
    if forChange { return 0 }
    let mode = lock.withLockPatiently { () -> FileWatch.Mode in
      watch.isArmed = true
      return watch.mode
    }
    switch mode {
    case .alwaysReady: notifyAtOnce(watch)
    case .sampled: scheduleSampling()
    case .none, .kernel: break
    }
    return 0
  }

  /// - Returns: 0 or the negated errno; nil if the kernel does not watch the descriptor.
  private func rearmInKernel(_ watch: FileWatch, _ forChange: Bool) -> Int? {
    // The registration of an installed watch changes only under both locks, so it is read again under the second.
    guard let registration = lock.withLockPatiently({ watch.registration }) else { return nil }
    let failure = registration.lock.withLock { () -> Int in
      guard watch.registration === registration, let poller = EventLoop.shared.pollerIfAny else { return 0 }
      watch.isArmed = true
      watch.waitsForChange = forChange
      return registration.update(in: poller)
    }
    if failure != 0 { sampleInstead(registration, failure) }
    return failure
  }

  func mode(of watch: FileWatch) -> FileWatch.Mode { lock.withLockPatiently { watch.mode } }

  private func notifyAtOnce(_ watch: FileWatch) {
    let isDue = lock.withLockPatiently { () -> Bool in
      defer { watch.isArmed = false }
      return watch.isArmed && watch.mode == .alwaysReady
    }
    if isDue { watch.notifyOwner() }
  }

  /// Delivers an event from the kernel.
  func deliver(index: Int, generation: UInt32, _ ready: Readiness, from poller: Poller) {
    let place = index - Poller.firstFile
    let found = lock.withLockPatiently { registrations.indices.contains(place) ? registrations[place] : nil }
    guard let registration = found else { return }
    let delivery = registration.take(ready, generation: generation, from: poller)
    if delivery.failure != 0 { sampleInstead(registration, delivery.failure) }
    delivery.notifyOwners()
  }

  /// Whether anything is watched.
  var isEmpty: Bool { lock.withLockPatiently { byDescriptor.isEmpty && sampled.isEmpty } }
}

// SAFETY: everything is GUARDED BY `lock`, or by the registrations' own locks.
extension WatchTable: @unchecked Sendable {}

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
