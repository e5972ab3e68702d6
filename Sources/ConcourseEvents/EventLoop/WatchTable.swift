internal import CConcourse
internal import Glibc

/// All watched descriptors of the process.
///
/// Lock order: the table's lock before a registration's. Events and `rearm` find their registration under the table's
/// lock, release it, and then take the registration's.
final class WatchTable {
  private let lock = Lock(.watchTable)
  // GUARDED BY `lock`.
  private var registrations: [FileRegistration] = []
  private var free: [FileRegistration] = []
  private var byDescriptor: [Int32: FileRegistration] = [:]
  /// The watches in mode `sampled`, and the timer that polls them.
  private var sampled: [FileWatch] = []
  private var sampler: LoopTimer?

  /// Nanoseconds between two polls of them.
  private static let samplingInterval: UInt64 = 10_000_000

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
  private func join(_ watch: FileWatch, _ poller: Poller?) -> Int32 {
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
  private func retireIfEmpty(_ registration: FileRegistration) {
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

  /// Polls the armed watches of a registration that the kernel refuses to watch.
  private func sampleInstead(_ registration: FileRegistration, _ failure: Int) {
    // EBADF: the client closed the descriptor before the cancel handler, which is its error. The watches stay silent.
    if failure == -Int(EBADF) { return }
    let isSampling = lock.withLockPatiently { () -> Bool in
      registration.lock.lock()
      defer { registration.lock.unlock() }
      let stranded = registration.detachArmed()
      for watch in stranded { watch.mode = .sampled }
      sampled += stranded
      if !stranded.isEmpty && registration.isEmpty {
        if let poller = EventLoop.shared.pollerIfAny { registration.leaveKernel(poller) }
        retireIfEmpty(registration)
      }
      return !stranded.isEmpty
    }
    guard isSampling else { return }
    Self.reportSampling(Int32(-failure))
    scheduleSampling()
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

// MARK: - Polling at intervals

extension WatchTable: TimerOwner {
  func timerIsDue(_ timer: LoopTimer) { sample() }

  private func scheduleSampling() {
    let timer = lock.withLockPatiently { () -> LoopTimer in
      if let sampler { return sampler }
      let made = LoopTimer(owner: self)
      sampler = made
      return made
    }
    timer.set(.uptime(Clock.uptime() &+ Self.samplingInterval))
  }

  private func sample() {
    let poller = EventLoop.shared.begin()
    var ready: [FileWatch] = []
    let goOn = lock.withLockPatiently { () -> Bool in
      sampled = sampled.filter { watch in
        guard watch.isArmed else { return true }
        // The kernel may accept it by now.
        if poller != nil && join(watch, poller) == 0 {
          watch.mode = .kernel
          return false
        }
        watch.isArmed = true
        let interest = watch.interest.readiness
        let found = System.readiness(of: watch.descriptor, interest.rawValue)
        if found > 0 {
          watch.isArmed = false
          ready.append(watch)
        }
        return true
      }
      return sampled.contains { $0.isArmed }
    }
    for watch in ready { watch.notifyOwner() }
    if goOn { scheduleSampling() }
  }

  private static let samplingReported = Atomic<Bool>(false)

  private static func reportSampling(_ failure: Int32) {
    // ORDERING: relaxed; only decides which caller prints.
    guard !samplingReported.exchange(true, ordering: .relaxed) else { return }
    Trap.warn(
      "the system refuses to watch a descriptor (errno \(failure)); it is polled every 10 ms instead")
  }
}

// SAFETY: everything is GUARDED BY `lock`, or by the registrations' own locks.
extension WatchTable: @unchecked Sendable {}
