internal import CConcourse
internal import Glibc

/// What read and write sources have in common: a watch of their descriptor.
// SAFETY: `source` and `watch` are GUARDED BY `lock`, the rest is constant.
class FileBackend: SourceBackend, FileWatchOwner, @unchecked Sendable {
  let descriptor: Int32
  private let interest: FileWatch.Interest
  private let lock = Lock()
  /// From `install` to `remove`, as `watch`, which holds this object.
  private var source: SourceCore?
  private var watch: FileWatch?

  init(_ descriptor: Int32, _ interest: FileWatch.Interest) {
    self.descriptor = descriptor
    self.interest = interest
  }

  final func install(for source: SourceCore) {
    let watch = FileWatch(descriptor: descriptor, interest: interest, owner: self)
    lock.withLock { (self.source, self.watch) = (source, watch) }
    watch.install()
  }

  final func fileIsReady(_ watch: FileWatch) { raise() }

  /// Asks for a visit, which looks at the descriptor.
  final func raise() { lock.withLock { source }?.raise(1) }

  func collect(_ pending: UInt) -> UInt? { 1 }

  func rearm() { lock.withLock { watch }?.rearm() }

  func restart() { rearm() }

  /// As `rearm`, for changes only.
  final func rearmForChange() { lock.withLock { watch }?.rearmForChange() }

  final func remove() {
    // Released outside the lock.
    let (watch, last) = lock.withLock { () -> (FileWatch?, SourceCore?) in
      defer { (self.watch, source) = (nil, nil) }
      return (self.watch, source)
    }
    watch?.remove()
    withExtendedLifetime(last) {}
  }

  final var isAlwaysReady: Bool { lock.withLock { watch }?.isAlwaysReady ?? false }
}

/// A write source's part: space is a yes or no.
// SAFETY: adds nothing to the inherited state.
final class WriteBackend: FileBackend, @unchecked Sendable {
  init(_ descriptor: Int32) { super.init(descriptor, .write) }
}

/// A read source's part: how much there is, and that its end is told without spinning.
// SAFETY: `next` is OWNED BY the visit that runs; visits follow one another.
final class ReadBackend: FileBackend, @unchecked Sendable {
  /// What to ask for when the handler has returned.
  private enum Next {
    /// To be told as long as there is something.
    case more
    /// The end has been told and stays: to be told of a change, a new writer say.
    case change
    /// That has been asked for.
    case nothing
  }

  private var next = Next.more

  init(_ descriptor: Int32) { super.init(descriptor, .read) }

  override func collect(_ pending: UInt) -> UInt? {
    let waiting = System.call(.deviceControl) { concourse_readable_bytes(descriptor) }
    if waiting > 0 {
      next = .more
      return UInt(waiting)
    }
    if isAlwaysReady { return collectFromFile(waiting) }
    // Nothing to read, or a kind that cannot count: is it ready all the same?
    let found = System.call(.poll) {
      Int(concourse_poll_now(descriptor, Readiness.readable.rawValue))
    }
    guard found > 0 else { return nil }
    if waiting < 0 { return 1 }
    // The end of the file. What is hung up stays there, whoever reads: once is enough to say so. A socket
    // whose other end has only shut down writing is told again, as long as the client keeps its source.
    guard Readiness(rawValue: UInt32(found)).contains(.hangUp) else {
      next = .more
      return 0
    }
    if next == .nothing { return nil }
    next = .change
    return 0
  }

  /// Regular files and devices that cannot be polled.
  private func collectFromFile(_ waiting: Int) -> UInt? {
    var status = stat()
    guard System.call(.status, { System.result(fstat(descriptor, &status)) }) == 0 else { return nil }
    // FIONREAD counts from the position to the end in a regular file: none, or past it.
    let isAtEnd = status.st_mode & S_IFMT == S_IFREG || isNull(status)
    next = isAtEnd ? .nothing : .more
    return isAtEnd ? 0 : 1
  }

  override func rearm() {
    switch next {
    case .more: super.rearm()
    case .change:
      next = .nothing
      rearmForChange()
    case .nothing: break
    }
  }

  /// What came while nobody listened may have been a change that is not told again: the visit looks by itself,
  /// and asks for what is to be asked for.
  override func restart() { raise() }

  private func isNull(_ status: stat) -> Bool {
    // Device 1, 3: /dev/null.
    status.st_mode & S_IFMT == S_IFCHR && status.st_rdev == 0x103
  }
}
