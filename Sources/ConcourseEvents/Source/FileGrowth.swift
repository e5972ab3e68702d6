internal import CConcourse
internal import Glibc

/// Notices when a file that has been read to its end has more to read.
///
/// The kernel cannot poll a regular file, but inotify reports each write to it. Without a free inotify watch, without a
/// /proc through which to name the file, and for a file whose last name has been removed, `FileGrowth` compares the
/// size with the position four times a second. Not noticed: writes that inotify does not see, such as those of other
/// machines to a network file system, through a memory map, or by io_uring before Linux 5.18.
///
/// A look at size and position may wait for the file's server, or for a long write through the same descriptor. So the
/// visit on the source's queue looks, not the threads that report timers and notices.
final class FileGrowth {
  /// How the file is observed.
  private enum Mechanism {
    case none
    case inotify(InotifyWatch)
    case polling(LoopTimer)
  }

  private let descriptor: Int32
  private let hub: InotifyHub
  private let lock = Lock(.fileGrowth)
  // GUARDED BY `lock`.
  /// Raised when there is more to read; nil after `end`.
  private var backend: ReadBackend?
  private var mechanism = Mechanism.none
  /// Whether the backend waits.
  private var isWaiting = false
  /// Whether the kernel may have dropped its watch.
  private var isStale = false

  /// The time between two polls, in nanoseconds. A poll may be a tenth of it late, so that several share a wake-up.
  private let pause: UInt64

  init(of descriptor: Int32, for backend: ReadBackend, hub: InotifyHub, pause: UInt64) {
    (self.descriptor, self.backend, self.hub, self.pause) = (descriptor, backend, hub, pause)
  }

  /// Raises the backend once, as soon as the file has more bytes than its position. Call again after that.
  func wait() {
    let (present, isStale) = lock.withLock { () -> (Mechanism, Bool) in
      defer { self.isStale = false }
      isWaiting = backend != nil
      return (mechanism, self.isStale)
    }
    switch present {
    case .none: observe()
    case .inotify: if isStale { observe() }
    case .polling(let timer): setTimer(timer)
    }
    // Catch what was written before the backend waited, or before the watch was there.
    look()
  }

  /// Stops observing. A concurrent notice is ignored.
  func end() {
    let (last, backend) = lock.withLock { () -> (Mechanism, ReadBackend?) in
      defer { (mechanism, self.backend, isWaiting) = (.none, nil, false) }
      return (mechanism, self.backend)
    }
    leave(last)
    // Release the backend outside the lock.
    withExtendedLifetime(backend) {}
  }

  private func leave(_ mechanism: Mechanism) {
    switch mechanism {
    case .none: break
    case .inotify(let watch): hub.remove(watch)
    case .polling(let timer): timer.cancel()
    }
  }

  /// Compares size and position.
  private func look() {
    guard lock.withLock({ isWaiting }) else { return }
    let left = BlockedSection.run { System.bytesLeft(in: descriptor) }
    if left == -Int(EBADF) { return end() }
    if left > 0 { raise() }
  }

  /// Raises the backend if it waits. Its visit calls `wait` again if there is nothing to read.
  private func raise() {
    let waiting = lock.withLock { () -> ReadBackend? in
      defer { isWaiting = false }
      return isWaiting ? backend : nil
    }
    waiting?.raise()
  }

  /// Replaces the mechanism, unless the source has ended.
  /// - Returns: the former one, which the caller must leave; nil if the source has ended.
  private func change(to fresh: Mechanism) -> Mechanism? {
    lock.withLock {
      guard backend != nil else { return nil }
      defer { mechanism = fresh }
      return mechanism
    }
  }

  // MARK: Through inotify

  private func observe() {
    let watch = InotifyWatch(listener: self)
    guard let former = change(to: .inotify(watch)) else { return }
    // Not /proc/self: that names the main thread, which may have exited while others run.
    let failure = hub.add(watch, path: "/proc/thread-self/fd/\(descriptor)", interest: Int32(IN_MODIFY))
    // The new one first: the kernel's watch then stays.
    leave(former)
    // `end` may have run in between and found nothing to undo.
    guard isCurrent(watch) else { return hub.remove(watch) }
    // The kernel may lose a watch that is added while the last name is being removed.
    guard failure == 0, let status = FileStatus(of: descriptor), status.links > 0 else {
      return startPolling()
    }
  }

  /// Gives the watch up if the backend does not wait. It reads, and the notice tells it nothing; or its source is suspended,
  /// and each further write of another process would wake a thread. `wait` adds the watch again.
  private func giveUp(_ watch: InotifyWatch) -> Bool {
    lock.withLock {
      guard !isWaiting, case .inotify(let current) = mechanism, current === watch else { return false }
      mechanism = .none
      return true
    }
  }

  private func isCurrent(_ watch: InotifyWatch) -> Bool {
    lock.withLock { if case .inotify(let current) = mechanism { current === watch } else { false } }
  }

  // MARK: By polling

  private func startPolling() {
    let timer = LoopTimer(owner: self)
    guard let former = change(to: .polling(timer)) else { return }
    leave(former)
    if lock.withLock({ isWaiting }) { setTimer(timer) }
  }

  private func setTimer(_ timer: LoopTimer) {
    let next = Clock.uptime() &+ pause
    timer.set(TimerWindow(clock: .uptime, earliest: next, latest: next &+ pause / 10))
    // The mechanism may have changed in between, and the timer not yet have been set.
    if !isCurrent(timer) { timer.cancel() }
  }

  private func isCurrent(_ timer: LoopTimer) -> Bool {
    lock.withLock { if case .polling(let current) = mechanism { current === timer } else { false } }
  }
}

extension FileGrowth: InotifyListener, TimerOwner {
  func fileNoticed(_ notice: InotifyWatch.Notice, by watch: InotifyWatch) {
    if giveUp(watch) { return hub.remove(watch) }
    guard isCurrent(watch) else { return }
    // The kernel drops its watch when the last name is removed, though the file can still be written through
    // descriptors.
    if notice.contains(Int32(IN_IGNORED)) { startPolling() }
    raise()
  }

  func noticesLost() {
    // Among them may have been the last notice of the kernel's own watch.
    lock.withLock { isStale = true }
    raise()
  }

  func timerIsDue(_ timer: LoopTimer) {
    if isCurrent(timer) { raise() }
  }
}

// SAFETY: mutable fields are GUARDED BY `lock`; the rest is constant.
extension FileGrowth: @unchecked Sendable {}
