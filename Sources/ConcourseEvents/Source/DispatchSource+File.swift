internal import CConcourse
internal import Glibc

extension DispatchSource {
  /// Creates a source that calls its handler while there is something to read.
  ///
  /// Level-triggered: the handler is called again as long as unread bytes remain. `data` estimates their number. A
  /// `data` of 0 means end of file. Files, hung-up pipes and hung-up terminals report it once each time that it is
  /// reached: the handler is called again when the file has grown, or when the pipe has a new writer. A socket whose
  /// peer has shut down writing or closed reports it repeatedly, until the source is cancelled. Listening sockets, and
  /// other descriptors that cannot count bytes, report 1, as do an empty datagram and the bytes behind an urgent one.
  /// Files and devices that the kernel cannot poll are always ready. Files of /proc, sysfs and control groups, whose
  /// lengths mean nothing, report 1 until the handler has read nothing at their end.
  ///
  /// Traps on a negative descriptor.
  /// - Parameters:
  ///   - fileDescriptor: must stay open until the cancel handler has run. A source for a descriptor that is already
  ///     closed never fires.
  ///   - queue: the queue on which the handlers run; nil means the default global queue.
  /// Matching C function: `dispatch_source_create` with `DISPATCH_SOURCE_TYPE_READ`.
  public class func makeReadSource(
    fileDescriptor: Int32, queue: DispatchQueue? = nil
  ) -> any DispatchSourceRead {
    makeFileSource(.read, fileDescriptor, queue) { ReadBackend($0) }
  }

  /// Creates a source that calls its handler while there is space to write.
  ///
  /// Level-triggered: the handler is called again as long as there is space, so suspend the source when there is
  /// nothing to write. `data` is 1. Files and devices that the kernel cannot poll are always ready. Traps on a
  /// negative descriptor.
  /// - Parameters:
  ///   - fileDescriptor: must stay open until the cancel handler has run.
  ///   - queue: the queue on which the handlers run; nil means the default global queue.
  /// Matching C function: `dispatch_source_create` with `DISPATCH_SOURCE_TYPE_WRITE`.
  public class func makeWriteSource(
    fileDescriptor: Int32, queue: DispatchQueue? = nil
  ) -> any DispatchSourceWrite {
    makeFileSource(.write, fileDescriptor, queue) { WriteBackend($0) }
  }

  private static func makeFileSource(
    _ kind: SourceKind, _ descriptor: Int32, _ queue: DispatchQueue?, _ backend: (Int32) -> FileBackend
  ) -> DispatchSource {
    guard descriptor >= 0 else {
      Trap.clientBug(
        510, "a \(kind.rawValue) source was made for descriptor \(descriptor), which is negative")
    }
    return DispatchSource(
      SourceCore(
        kind: kind, handle: UInt(descriptor), mask: 0, merging: .replace, target: queue,
        backend: backend(descriptor)))
  }
}

/// A source that reports bytes to read.
public protocol DispatchSourceRead: DispatchSourceProtocol {}

/// A source that reports space to write.
public protocol DispatchSourceWrite: DispatchSourceProtocol {}

extension DispatchSource: DispatchSourceRead, DispatchSourceWrite {}

/// The backend of read and write sources: a watch of their descriptor.
// SAFETY: `source` and `watch` are GUARDED BY `lock`; the rest is constant.
class FileBackend: SourceBackend, FileWatchOwner, @unchecked Sendable {
  let descriptor: Int32
  private let interest: FileWatch.Interest
  private let lock = Lock(.fileBackend)
  /// Set from `install` to `remove`, as is `watch`, which retains this object.
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

  /// Requests a visit, which checks the descriptor.
  final func raise() { lock.withLock { source }?.raise(1) }

  func collect(_ pending: UInt) -> UInt? { 1 }

  func rearm() { lock.withLock { watch }?.rearm() }

  func restart() { rearm() }

  /// As `rearm`, but reports only changes.
  final func rearmForChange() { lock.withLock { watch }?.rearmForChange() }

  func remove() {
    // Release the source outside the lock.
    let (watch, last) = lock.withLock { () -> (FileWatch?, SourceCore?) in
      defer { (self.watch, source) = (nil, nil) }
      return (self.watch, source)
    }
    watch?.remove()
    withExtendedLifetime(last) {}
  }

  /// Runs `body` under the lock, unless the source has ended.
  final func whileInstalled<Result>(_ body: () -> Result) -> Result? {
    lock.withLock { source == nil ? nil : body() }
  }

  final var isInKernel: Bool { lock.withLock { watch }?.isInKernel ?? false }

  final var isAlwaysReady: Bool { lock.withLock { watch }?.isAlwaysReady ?? false }
}

/// The backend of a write source. It reports only whether there is space.
// SAFETY: `notice` is OWNED BY the running visit; visits never overlap.
final class WriteBackend: FileBackend, @unchecked Sendable {
  /// What becomes of a notice in the error queue of a full socket, which the kernel reports as long as it is there.
  private enum Notice {
    case none
    /// `rearm` requests an event on a change.
    case found
    /// It has been requested.
    case known
  }

  private var notice = Notice.none

  init(_ descriptor: Int32) { super.init(descriptor, .write) }

  override func collect(_ pending: UInt) -> UInt? {
    let found = isAlwaysReady ? -1 : System.readiness(of: descriptor, Readiness.writable.rawValue)
    guard found > 0, isOnlyNotice(Readiness(rawValue: UInt32(found))) else {
      notice = .none
      return found == 0 ? nil : 1
    }
    // Only the kernel reports changes; a sampled descriptor is looked at again.
    if !isInKernel { notice = .none } else if notice == .none { notice = .found }
    return nil
  }

  /// Whether a socket has neither space nor an end, which would be writable or hung up. A full pipe without readers has
  /// an error, too.
  private func isOnlyNotice(_ readiness: Readiness) -> Bool {
    readiness.isDisjoint(with: [.writable, .hangUp]) && System.socketType(of: descriptor) >= 0
  }

  override func rearm() {
    switch notice {
    case .none: super.rearm()
    case .found:
      notice = .known
      rearmForChange()
    case .known: break
    }
  }

  /// A change that came while there was no handler may not be reported again: the visit checks the descriptor.
  override func restart() { raise() }
}

/// The backend of a read source. It counts the readable bytes, and reports end of file without spinning.
// SAFETY: `next`, `kind` and `reportedPosition` are OWNED BY the running visit; visits never overlap. `growth` is GUARDED BY the lock of
// `whileInstalled`, until `remove` has ended the source; the rest is constant.
final class ReadBackend: FileBackend, @unchecked Sendable {
  /// What `rearm` requests after the handler has returned.
  private enum Next {
    /// An event as long as there is something to read.
    case more
    /// The end of file has been reported and persists: an event only on a change, such as a new writer.
    case change
    /// Nothing from the kernel's queue: `change` has been requested already. For a file, an event when it has grown.
    case nothing
  }

  private var next = Next.more
  private enum Kind {
    case file
    /// A file of the kernel's, in /proc, sysfs or a control group. Its length says nothing about its bytes.
    case generated
    case other
  }

  /// nil before the first visit.
  private var kind: Kind?
  /// Where the client was in a generated file when bytes were last reported.
  private var reportedPosition = -1
  /// Made when a file's end is first reported.
  private var growth: FileGrowth?
  private let hub: InotifyHub
  private let pause: UInt64

  /// - Parameters:
  ///   - hub: the process's hub; tests pass their own.
  ///   - pause: the time between two looks at a file that inotify does not watch, in nanoseconds.
  init(_ descriptor: Int32, hub: InotifyHub = .shared, pause: UInt64 = 250_000_000) {
    (self.hub, self.pause) = (hub, pause)
    super.init(descriptor, .read)
  }

  override func collect(_ pending: UInt) -> UInt? {
    let waiting = countBytes()
    if waiting > 0 { return more(UInt(waiting)) }
    if isAlwaysReady { return collectFromFile() }
    // No bytes, or a descriptor that cannot count them: it may be readable all the same.
    let found = System.readiness(of: descriptor, Readiness.readable.rawValue)
    guard found > 0 else { return nil }
    if waiting < 0 {
      // A terminal whose other side has gone counts no bytes, and has none.
      let isHungUp = waiting == -Int(EIO) && Readiness(rawValue: UInt32(found)).contains(.hangUp)
      return isHungUp ? end() : more(1)
    }
    // The bytes may have come after they were counted, and the hang-up of their writer behind them.
    let late = countBytes()
    return late > 0 ? more(UInt(late)) : collectWithoutBytes(Readiness(rawValue: UInt32(found)))
  }

  private func more(_ data: UInt) -> UInt {
    next = .more
    return data
  }

  private func countBytes() -> Int {
    if kind == nil { kind = kindOfDescriptor() }
    // FIONREAD counts in an int, and a file may be longer. A file's server may take long to answer.
    switch kind {
    case .file: return BlockedSection.run { System.bytesLeft(in: descriptor) }
    case .generated: return BlockedSection.run { countGeneratedBytes() }
    case .other, nil: return System.readableBytes(of: descriptor)
    }
  }

  /// 1, or 0 if the client has read nothing since the last report because there is nothing.
  private func countGeneratedBytes() -> Int {
    let position = System.position(of: descriptor)
    guard position >= 0 else { return position }
    if position != reportedPosition {
      reportedPosition = position
      return 1
    }
    // A read at the beginning of a file in /proc that can be polled may consume what it returns, as that of /proc/kmsg
    // does. A read beside a client that makes progress would have the kernel make the bytes anew for the client.
    guard position > 0 || isAlwaysReady || !System.isInProc(descriptor) else { return 1 }
    // /proc/self/pagemap is read in words.
    var word: UInt64 = 0
    return min(1, max(0, System.read(descriptor, &word, 8, position)))
  }

  private func kindOfDescriptor() -> Kind? {
    BlockedSection.run {
      var status = stat()
      guard System.status(of: descriptor, &status) == 0 else { return nil }
      guard status.st_mode & S_IFMT == S_IFREG else { return .other }
      return System.isGenerated(descriptor) ? .generated : .file
    }
  }

  /// Handles a descriptor that is ready without bytes: an empty datagram, or the end of file.
  private func collectWithoutBytes(_ readiness: Readiness) -> UInt? {
    let socketType = System.socketType(of: descriptor)
    // A hung-up pipe stays so for every reader, as does the end of a file that the kernel can poll: report it once.
    guard socketType >= 0 else { return readiness.contains(.hangUp) || kind != .other ? end() : more(0) }
    if [SOCK_DGRAM, SOCK_RAW].contains(where: { Int($0.rawValue) == socketType }) {
      if readiness.contains(.readable) { return more(1) }
      // An error that an earlier datagram has caused is not the end, either. It looks like a notice in the error queue,
      // which reading does not remove: both are reported at each change.
      if readiness.contains(.error) {
        if !isInKernel { next = .more } else if next != .nothing { next = .change }
        return 1
      }
    }
    // The end of a connection is reported until the client cancels its source. Bytes behind an urgent one are not
    // counted.
    if readiness.contains(.readable) { return more(System.isAtMark(descriptor) ? 1 : 0) }
    if readiness.contains(.hangUp) { return end() }
    // The error queue has a notice, such as that of a transmission without a copy. A failed connection is readable.
    // Only the kernel reports changes; a sampled descriptor is looked at again.
    if !isInKernel { next = .more } else if next != .nothing { next = .change }
    return nil
  }

  /// Reports an end that lasts, once.
  private func end() -> UInt? {
    if next == .nothing { return nil }
    next = .change
    return 0
  }

  /// Handles regular files, and devices that cannot be polled.
  private func collectFromFile() -> UInt? {
    var status = stat()
    let failure = System.status(of: descriptor, &status)
    guard failure == 0 else {
      // Of a closed descriptor there is nothing to say. The client's read finds the error of a file's server.
      next = failure == -Int(EBADF) ? .nothing : .more
      return failure == -Int(EBADF) ? nil : 1
    }
    // The position in a regular file is at or past the end here.
    return status.st_mode & S_IFMT == S_IFREG || isNull(status) ? end() : more(1)
  }

  override func rearm() {
    switch next {
    case .more: super.rearm()
    case .change:
      next = .nothing
      rearmForChange()
      if kind == .file { awaitGrowth() }
    case .nothing:
      if kind == .file { awaitGrowth() }
    }
  }

  private func awaitGrowth() {
    let growth = whileInstalled { () -> FileGrowth in
      if let known = self.growth { return known }
      let made = FileGrowth(of: descriptor, for: self, hub: hub, pause: pause)
      self.growth = made
      return made
    }
    growth?.wait()
  }

  override func remove() {
    super.remove()
    // No visit makes one any more.
    growth?.end()
    growth = nil
  }

  /// A change that came while there was no handler may not be reported again: the visit checks the descriptor, and
  /// requests the next event.
  override func restart() { raise() }

  private func isNull(_ status: stat) -> Bool {
    // Device 1, 3: /dev/null.
    status.st_mode & S_IFMT == S_IFCHR && status.st_rdev == 0x103
  }
}
