internal import Glibc

extension DispatchSource {
  /// What a file-system object source can report. Matching C constants: `DISPATCH_VNODE_DELETE` and so on.
  public struct FileSystemEvent: OptionSet, RawRepresentable, Sendable {
    /// The bits, as in C.
    public let rawValue: UInt

    /// The events with these bits.
    public init(rawValue: UInt) { self.rawValue = rawValue }

    /// The last name of the file or directory has been removed.
    public static let delete = FileSystemEvent(rawValue: 0x1)
    /// The content has changed; for a directory, the entries.
    public static let write = FileSystemEvent(rawValue: 0x2)
    /// The file has become longer.
    public static let extend = FileSystemEvent(rawValue: 0x4)
    /// Mode, owner, times or extended attributes have changed.
    public static let attrib = FileSystemEvent(rawValue: 0x8)
    /// The link count has changed; for a directory, the number of subdirectories.
    public static let link = FileSystemEvent(rawValue: 0x10)
    /// The file has been renamed or moved.
    public static let rename = FileSystemEvent(rawValue: 0x20)
    /// The file system has been unmounted.
    public static let revoke = FileSystemEvent(rawValue: 0x40)
    /// The file was unlocked. Linux does not report this: creating a source for it traps.
    public static let funlock = FileSystemEvent(rawValue: 0x100)
    /// All events except `.funlock`.
    public static let all: FileSystemEvent = [.delete, .write, .extend, .attrib, .link, .rename, .revoke]

    /// The events that can be observed on this system: `.all`. Portable code intersects its mask with this.
    public static var observable: FileSystemEvent { .all }

    static let names: [(UInt, String)] = [
      (delete.rawValue, "delete"), (write.rawValue, "write"), (extend.rawValue, "extend"),
      (attrib.rawValue, "attrib"), (link.rawValue, "link"), (rename.rawValue, "rename"),
      (revoke.rawValue, "revoke"), (funlock.rawValue, "funlock"),
    ]
  }

  /// Creates a source that calls its handler when something happens to an open file or directory.
  ///
  /// The source observes the file itself, not its name: changes through other descriptors and other names are
  /// reported too. Writes through memory maps are not reported, and neither are changes that other machines make on a
  /// network file system. If the kernel has no inotify watches left, or /proc is missing, or the file is in memory and
  /// has no name (memfd_create), the source polls the file four times a second. Without /proc it cannot see the name, and reports
  /// `.rename` with each change that nothing else explains.
  ///
  /// Traps on a negative descriptor, on one without a file, such as that of an eventfd, on an empty mask, and on
  /// `.funlock`.
  /// - Parameters:
  ///   - fileDescriptor: the file; it must stay open until the cancel handler has run. The kernel grants a watch only
  ///     on a file that the process may read; other files are polled.
  ///   - eventMask: the events to report.
  ///   - queue: the queue on which the handlers run; nil means the default global queue.
  /// Matching C function: `dispatch_source_create` with `DISPATCH_SOURCE_TYPE_VNODE`.
  public class func makeFileSystemObjectSource(
    fileDescriptor: Int32, eventMask: FileSystemEvent, queue: DispatchQueue? = nil
  ) -> any DispatchSourceFileSystemObject {
    makeFileSystemObject(fileDescriptor, eventMask, queue).orTrap()
  }

  /// As `makeFileSystemObjectSource`, but returns a refusal instead of trapping.
  static func makeFileSystemObject(
    _ descriptor: Int32, _ mask: FileSystemEvent, _ queue: DispatchQueue?
  ) -> Result<DispatchSource, SourceRefusal> {
    FileSystemBackend.make(descriptor: descriptor, mask: mask).map { backend in
      DispatchSource(
        SourceCore(
          kind: .fileSystemObject, handle: UInt(descriptor), mask: mask.rawValue, merging: .or, target: queue,
          backend: backend))
    }
  }
}

/// A source that reports what happens to a file or directory.
public protocol DispatchSourceFileSystemObject: DispatchSourceProtocol {
  /// The observed descriptor. Matching C function: `dispatch_source_get_handle`.
  var handle: Int32 { get }

  /// The requested events; empty after cancellation. Matching C function: `dispatch_source_get_mask`.
  var mask: DispatchSource.FileSystemEvent { get }

  /// The events since the last call of the event handler; defined only inside the handler.
  /// Matching C function: `dispatch_source_get_data`.
  var data: DispatchSource.FileSystemEvent { get }
}

extension DispatchSourceFileSystemObject {
  /// Implements `handle`. The name differs from that of process sources because `DispatchSource` conforms to both
  /// protocols.
  @_implements(DispatchSourceFileSystemObject,handle)
  public var _fileDescriptor: Int32 { Int32(truncatingIfNeeded: source.handle) }

  /// See the requirement.
  public var mask: DispatchSource.FileSystemEvent { .init(rawValue: source.mask) }

  /// See the requirement.
  public var data: DispatchSource.FileSystemEvent { .init(rawValue: source.data) }
}

extension DispatchSource: DispatchSourceFileSystemObject {}

/// Observes the file behind an open descriptor through `InotifyHub`. Without a free inotify watch, or without a /proc
/// through which to name the file, it polls the file four times a second.
///
/// Not reported: writes through memory maps, and, while polling, changes that are undone between two polls.
final class FileSystemBackend {
  /// How the file is observed.
  private enum Mechanism {
    case none
    case inotify(InotifyWatch)
    case polling(LoopTimer)
  }

  private let descriptor: Int32
  private let mask: DispatchSource.FileSystemEvent
  private let hub: InotifyHub
  private let lock = Lock(.fileSystemBackend)
  // GUARDED BY `lock`.
  private var source: SourceCore?
  private var mechanism = Mechanism.none
  private var observation = FileObservation(FileStatus())
  private var isDirectory = false
  /// The watch of the directory that contains ours. While a removed directory is open, only the parent's watch
  /// reports the removal.
  private var parent: InotifyWatch?

  /// The time between two polls, in nanoseconds. A poll may be a tenth of it late, so that several share a wake-up.
  private let pause: UInt64

  /// Makes a backend, or says why the arguments do not allow one.
  /// - Parameters:
  ///   - hub: the process's hub; tests pass their own.
  ///   - pause: the time between two polls, in nanoseconds.
  static func make(
    descriptor: Int32, mask: DispatchSource.FileSystemEvent, hub: InotifyHub = .shared,
    pause: UInt64 = 250_000_000
  ) -> Result<FileSystemBackend, SourceRefusal> {
    let factory = "makeFileSystemObjectSource(fileDescriptor: \(descriptor))"
    guard descriptor >= 0 else {
      return .failure(SourceRefusal(510, "\(factory): a descriptor must not be negative"))
    }
    let refusal = SourceMask.refusal(
      of: mask.rawValue, observable: DispatchSource.FileSystemEvent.observable.rawValue,
      names: DispatchSource.FileSystemEvent.names, in: factory,
      because: "Linux does not report when a file is unlocked")
    if let refusal { return .failure(refusal) }
    // The kernel's own objects have no type.
    var status = stat()
    guard System.status(of: descriptor, &status) < 0 || status.st_mode & S_IFMT != 0 else {
      return .failure(
        SourceRefusal(523, "\(factory): the descriptor is that of an eventfd or the like, not of a file"))
    }
    return .success(FileSystemBackend(descriptor, mask, hub, pause))
  }

  private init(
    _ descriptor: Int32, _ mask: DispatchSource.FileSystemEvent, _ hub: InotifyHub, _ pause: UInt64
  ) {
    self.descriptor = descriptor
    self.mask = mask
    self.hub = hub
    self.pause = pause
  }

  /// Updates the observation and raises the resulting events that are in the mask.
  private func report(
    alsoRaising extra: DispatchSource.FileSystemEvent = [],
    _ change: (inout FileObservation) -> DispatchSource.FileSystemEvent
  ) {
    let (source, events) = lock.withLock { (self.source, change(&observation).union(extra)) }
    let wanted = events.intersection(mask)
    if !wanted.isEmpty { source?.raise(wanted.rawValue) }
  }
}

// MARK: - Life

extension FileSystemBackend: SourceBackend {
  func install(for source: SourceCore) {
    guard let status = FileStatus(of: descriptor, withPath: mask.contains(.rename)) else {
      Trap.warn("a file-system object source was activated for descriptor \(descriptor), which is not open")
      return
    }
    let own = InotifyWatch(listener: self)
    lock.withLock {
      self.source = source
      observation = FileObservation(status)
      isDirectory = status.isDirectory
      mechanism = .inotify(own)
    }
    guard !isSilent(status), join(own), observeParent() else { return startPolling() }
    // Catch changes made between the first `fstat` and the watch.
    if let status = FileStatus(of: descriptor) { report { $0.compare(status) } }
  }

  /// Whether the kernel may grant a watch but not report writes: so it is with the files of memfd_create, which are on no
  /// mounted file system. Other files in memory without names cannot be told from these.
  private func isSilent(_ status: FileStatus) -> Bool {
    status.links == 0 && System.hasSeals(descriptor)
  }

  func remove() {
    let last = lock.withLock { () -> (Mechanism, InotifyWatch?, SourceCore?) in
      defer { (mechanism, parent, source) = (.none, nil, nil) }
      return (mechanism, parent, source)
    }
    leave(last.0, parent: last.1)
    // `last` releases the source here, outside the lock.
  }

  private func leave(_ mechanism: Mechanism, parent: InotifyWatch?) {
    switch mechanism {
    case .none: break
    case .inotify(let own): hub.remove(own)
    case .polling(let timer): timer.cancel()
    }
    if let parent { hub.remove(parent) }
  }

  /// What `watch` observes; nil once it has been replaced or removed.
  private func role(of watch: InotifyWatch) -> WatchRole? {
    lock.withLock {
      if watch === parent { return .parent }
      guard case .inotify(let own) = mechanism, own === watch else { return nil }
      return .own
    }
  }

  private enum WatchRole {
    case own, parent
  }

  /// Registers `watch`, which is already stored, with the hub.
  /// - Returns: false if the kernel refuses the watch.
  private func join(_ watch: InotifyWatch) -> Bool {
    guard let role = role(of: watch) else { return true }
    // Not /proc/self: that names the main thread, which may have exited while others run.
    let path = "/proc/thread-self/fd/\(descriptor)"
    let failure =
      switch role {
      case .own:
        hub.add(watch, path: path, interest: InotifyHub.interest(isDirectory: lock.withLock { isDirectory }))
      case .parent: hub.add(watch, path: path + "/..", interest: InotifyHub.interestInParent)
      }
    // `remove` may have run in between and found nothing to undo.
    if self.role(of: watch) == nil { hub.remove(watch) }
    // A directory that has been removed has no parent.
    return failure == 0 || role == .parent && failure == ENOENT
  }

  /// Observes the directory that contains ours now.
  private func observeParent() -> Bool {
    let fresh = InotifyWatch(listener: self)
    let (isNeeded, former) = lock.withLock { () -> (Bool, InotifyWatch?) in
      guard isDirectory, source != nil, !mask.isDisjoint(with: [.delete, .link]) else { return (false, nil) }
      defer { parent = fresh }
      return (true, parent)
    }
    // The new one first: removing the last watch of a directory queues a notice.
    defer { if let former { hub.remove(former) } }
    return !isNeeded || join(fresh)
  }

  private func startPolling() {
    let timer = LoopTimer(owner: self)
    let former = lock.withLock { () -> (Mechanism, InotifyWatch?) in
      guard source != nil else { return (.none, nil) }
      defer { (mechanism, parent) = (.polling(timer), nil) }
      return (mechanism, parent)
    }
    leave(former.0, parent: former.1)
    setTimer(timer)
  }

  private func setTimer(_ timer: LoopTimer) {
    let next = Clock.uptime() &+ pause
    timer.set(TimerWindow(clock: .uptime, earliest: next, latest: next &+ pause / 10))
    // `remove` may have run in between and found the timer not yet set.
    if lock.withLock({ source == nil }) { timer.cancel() }
  }
}

// MARK: - Events

extension FileSystemBackend: InotifyListener, TimerOwner {
  func fileNoticed(_ notice: InotifyWatch.Notice, by watch: InotifyWatch) {
    guard let role = role(of: watch) else { return }
    // Many sources may observe one parent: read the status only if a directory was removed there.
    if role == .parent && !notice.isRemovalOfDirectory { return }
    // Once the client has closed the descriptor there is a notice but no status.
    let isMove = role == .own && notice.contains(IN_MOVE_SELF)
    let status = FileStatus(of: descriptor, withPath: isMove && mask.contains(.rename))
    switch role {
    case .parent:
      if let status { report { $0.linksChanged(status) } }
    case .own:
      if notice.concernsEntry { entryNoticed(notice, status) } else { selfNoticed(notice, status) }
    }
  }

  private func entryNoticed(_ notice: InotifyWatch.Notice, _ status: FileStatus?) {
    // Ignore changes inside an entry: the directory itself is unchanged.
    guard notice.contains(IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO), let status else { return }
    let isDirectory = notice.contains(Int32(IN_ISDIR)) && notice.contains(IN_CREATE | IN_DELETE)
    report { $0.entriesChanged(status, isDirectory: isDirectory) }
  }

  private func selfNoticed(_ notice: InotifyWatch.Notice, _ status: FileStatus?) {
    report { observation in
      var events = DispatchSource.FileSystemEvent()
      if notice.contains(IN_MODIFY), let status { events.formUnion(observation.contentChanged(status)) }
      if notice.contains(IN_ATTRIB), let status { events.formUnion(observation.attributesChanged(status)) }
      if notice.contains(IN_DELETE_SELF) { events.formUnion(observation.deleted()) }
      if notice.contains(IN_MOVE_SELF) { events.formUnion(observation.moved(status)) }
      if notice.contains(Int32(IN_UNMOUNT)) { events.insert(.revoke) }
      return events
    }
    // The kernel drops its watch when the last name is removed, though the file can still be written through
    // descriptors. It may silently lose a watch that is added before the removal has finished, and the last notice
    // comes earlier. So poll from here on.
    if notice.contains(Int32(IN_IGNORED)), status != nil { return startPolling() }
    if notice.contains(IN_MOVE_SELF) {
      guard observeParent() else { return startPolling() }
      // Catch a removal before the parent's new watch.
      if let status = FileStatus(of: descriptor) { report { $0.linksChanged(status) } }
    }
  }

  func noticesLost() {
    // Among them may have been a move, or the last notice of the kernel's own watch.
    let isObserved = joinAgain() && observeParent()
    let status = FileStatus(of: descriptor, withPath: mask.contains(.rename))
    report(alsoRaising: [.write, .attrib]) { observation in status.map { observation.compare($0) } ?? [] }
    guard let status else { return }
    if !isObserved || status.links == 0 { startPolling() }
  }

  /// Replaces the file's own watch.
  /// - Returns: false if the kernel refuses the new one.
  private func joinAgain() -> Bool {
    let fresh = InotifyWatch(listener: self)
    let former = lock.withLock { () -> InotifyWatch? in
      guard case .inotify(let own) = mechanism else { return nil }
      mechanism = .inotify(fresh)
      return own
    }
    guard let former else { return true }
    // The new one first: the kernel's watch, if there still is one, serves both.
    let isJoined = join(fresh)
    hub.remove(former)
    return isJoined
  }

  func timerIsDue(_ timer: LoopTimer) {
    // Two threads may have begun to poll at the same time.
    let isCurrent = lock.withLock {
      if case .polling(let current) = mechanism { current === timer } else { false }
    }
    guard isCurrent else { return }
    if let status = FileStatus(of: descriptor, withPath: mask.contains(.rename)) {
      report { $0.compare(status) }
    }
    setTimer(timer)
  }
}

// SAFETY: mutable fields are guarded as noted above; the rest is constant.
extension FileSystemBackend: @unchecked Sendable {}
