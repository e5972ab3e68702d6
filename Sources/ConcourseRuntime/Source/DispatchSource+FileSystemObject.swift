internal import Glibc

extension DispatchSource {
  /// What a file-system object source can report. Matching C constants: `DISPATCH_VNODE_DELETE` and so on.
  public struct FileSystemEvent: OptionSet, RawRepresentable, Sendable {
    /// The bits, as in C.
    public let rawValue: UInt

    /// The events with these bits.
    public init(rawValue: UInt) { self.rawValue = rawValue }

    /// The last name of the file, or the directory, has been removed.
    public static let delete = FileSystemEvent(rawValue: 0x1)
    /// The content has changed; for a directory, the entries.
    public static let write = FileSystemEvent(rawValue: 0x2)
    /// The file has become longer.
    public static let extend = FileSystemEvent(rawValue: 0x4)
    /// Mode, owner, times or extended attributes have changed.
    public static let attrib = FileSystemEvent(rawValue: 0x8)
    /// The number of names has changed; for a directory, that of its subdirectories.
    public static let link = FileSystemEvent(rawValue: 0x10)
    /// The file has been renamed or moved.
    public static let rename = FileSystemEvent(rawValue: 0x20)
    /// The file system has gone.
    public static let revoke = FileSystemEvent(rawValue: 0x40)
    /// The file was unlocked. Linux tells nobody: a source cannot be made for it.
    public static let funlock = FileSystemEvent(rawValue: 0x100)
    /// All of them but `.funlock`.
    public static let all: FileSystemEvent = [.delete, .write, .extend, .attrib, .link, .rename, .revoke]

    /// What can be observed here: `.all`. Code for several systems intersects its mask with this.
    public static var observable: FileSystemEvent { .all }

    static let names: [(UInt, String)] = [
      (delete.rawValue, "delete"), (write.rawValue, "write"), (extend.rawValue, "extend"),
      (attrib.rawValue, "attrib"), (link.rawValue, "link"), (rename.rawValue, "rename"),
      (revoke.rawValue, "revoke"), (funlock.rawValue, "funlock"),
    ]
  }

  /// Creates a source that calls its handler when something happens to an open file or directory.
  ///
  /// The file is observed, not a name of it: what happens through other descriptors and other names is
  /// reported too. Writes through memory maps are not, and neither is what other machines do on a network
  /// file system. Where the kernel has no watches left, or there is no /proc, the file is looked at four
  /// times a second instead.
  ///
  /// Traps on a negative descriptor, on an empty mask, and on `.funlock`.
  /// - Parameters:
  ///   - fileDescriptor: of the file; it must stay open until the cancel handler has run. The kernel lets
  ///     nobody observe a file that he may not read: such a file is looked at, see above.
  ///   - eventMask: what to report.
  ///   - queue: where the handlers run; nil means the default global queue.
  /// Matching C function: `dispatch_source_create` with `DISPATCH_SOURCE_TYPE_VNODE`.
  public class func makeFileSystemObjectSource(
    fileDescriptor: Int32, eventMask: FileSystemEvent, queue: DispatchQueue? = nil
  ) -> any DispatchSourceFileSystemObject {
    makeFileSystemObject(fileDescriptor, eventMask, queue).orTrap()
  }

  /// As `makeFileSystemObjectSource`, for callers that must not die of a refusal.
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
  /// The descriptor. Matching C function: `dispatch_source_get_handle`.
  var handle: Int32 { get }

  /// The events asked for; empty after cancellation. Matching C function: `dispatch_source_get_mask`.
  var mask: DispatchSource.FileSystemEvent { get }

  /// What has happened since the last call of the event handler; defined only inside it. Matching C
  /// function: `dispatch_source_get_data`.
  var data: DispatchSource.FileSystemEvent { get }
}

extension DispatchSourceFileSystemObject {
  /// `handle`. Named apart from that of process sources, which has the same type: `DispatchSource` has both.
  @_implements(DispatchSourceFileSystemObject,handle)
  public var _fileDescriptor: Int32 { Int32(truncatingIfNeeded: source.handle) }

  /// See the requirement.
  public var mask: DispatchSource.FileSystemEvent { .init(rawValue: source.mask) }

  /// See the requirement.
  public var data: DispatchSource.FileSystemEvent { .init(rawValue: source.data) }
}

extension DispatchSource: DispatchSourceFileSystemObject {}

/// Listens to the file behind an open descriptor, through the hub; where the kernel has no watches left,
/// or no /proc through which to name the file, by looking at it four times a second.
///
/// What nobody can see is not reported: writes through memory maps, and, when looking, what was undone
/// between two looks.
final class FileSystemBackend {
  /// How the file is observed.
  private enum Road {
    case none
    case noticed(InotifyWatch)
    case sampled(LoopTimer)
  }

  private let descriptor: Int32
  private let mask: DispatchSource.FileSystemEvent
  private let hub: InotifyHub
  private let lock = Lock()
  // GUARDED BY `lock`.
  private var source: SourceCore?
  private var road = Road.none
  private var observation = FileObservation(FileStatus())
  private var isDirectory = false
  /// A directory's own watch is not told that the directory was removed while it is open: its parent's is.
  private var parent: InotifyWatch?

  /// Between two looks; a tenth of it they may be late, so that several share a wake-up.
  private let pause: UInt64

  /// A backend, or why there can be none.
  /// - Parameters:
  ///   - hub: another than the process's in tests.
  ///   - pause: between two looks at a file that nobody gives notice of.
  static func make(
    descriptor: Int32, mask: DispatchSource.FileSystemEvent, hub: InotifyHub = .shared,
    pause: UInt64 = 250_000_000
  ) -> Result<FileSystemBackend, SourceRefusal> {
    let factory = "makeFileSystemObjectSource(fileDescriptor: \(descriptor))"
    guard descriptor >= 0 else {
      return .failure(SourceRefusal("\(factory): a descriptor is not below 0"))
    }
    let refusal = SourceMask.refusal(
      of: mask.rawValue, observable: DispatchSource.FileSystemEvent.observable.rawValue,
      names: DispatchSource.FileSystemEvent.names, in: factory,
      because: "Linux tells nobody when a file is unlocked")
    if let refusal { return .failure(refusal) }
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

  /// Updates the observation and raises what follows from it.
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
      road = .noticed(own)
    }
    guard join(own), observeParent() else { return observeBySampling() }
    // What happened between the first look and the watch.
    if let status = FileStatus(of: descriptor) { report { $0.compare(status) } }
  }

  func remove() {
    let last = lock.withLock { () -> (Road, InotifyWatch?, SourceCore?) in
      defer { (road, parent, source) = (.none, nil, nil) }
      return (road, parent, source)
    }
    leave(last.0, parent: last.1)
    // The source is released here, outside the lock.
  }

  private func leave(_ road: Road, parent: InotifyWatch?) {
    switch road {
    case .none: break
    case .noticed(let own): hub.remove(own)
    case .sampled(let timer): timer.cancel()
    }
    if let parent { hub.remove(parent) }
  }

  /// The file itself, or the directory that it stands in.
  private func part(of watch: InotifyWatch) -> Part? {
    lock.withLock {
      if watch === parent { return .parent }
      guard case .noticed(let own) = road, own === watch else { return nil }
      return .own
    }
  }

  private enum Part {
    case own, parent
  }

  /// Lets the hub tell us through `watch`, which is already noted.
  /// - Returns: whether the kernel will.
  private func join(_ watch: InotifyWatch) -> Bool {
    guard let part = part(of: watch) else { return true }
    // Not /proc/self: that one is the main thread's, which may have ended while others go on.
    let path = "/proc/thread-self/fd/\(descriptor)"
    let failure =
      switch part {
      case .own:
        hub.add(watch, path: path, interest: InotifyHub.interest(isDirectory: lock.withLock { isDirectory }))
      case .parent: hub.add(watch, path: path + "/..", interest: InotifyHub.interestInParent)
      }
    // `remove` may have come between, and found nothing to take back.
    if self.part(of: watch) == nil { hub.remove(watch) }
    // A directory that has been removed has no parent.
    return failure == 0 || part == .parent && failure == ENOENT
  }

  /// Observes the directory that ours stands in now.
  private func observeParent() -> Bool {
    let fresh = InotifyWatch(listener: self)
    let (isNeeded, former) = lock.withLock { () -> (Bool, InotifyWatch?) in
      guard isDirectory, source != nil, !mask.isDisjoint(with: [.delete, .link]) else { return (false, nil) }
      defer { parent = fresh }
      return (true, parent)
    }
    if let former { hub.remove(former) }
    return isNeeded ? join(fresh) : true
  }

  private func observeBySampling() {
    let timer = LoopTimer(owner: self)
    let former = lock.withLock { () -> (Road, InotifyWatch?) in
      guard source != nil else { return (.none, nil) }
      defer { (road, parent) = (.sampled(timer), nil) }
      return (road, parent)
    }
    leave(former.0, parent: former.1)
    setTimer(timer)
  }

  private func setTimer(_ timer: LoopTimer) {
    let next = Clock.uptime() &+ pause
    timer.set(TimerWindow(clock: .uptime, earliest: next, latest: next &+ pause / 10))
    // `remove` may have come between, and found the timer not yet set.
    if lock.withLock({ source == nil }) { timer.cancel() }
  }
}

// MARK: - Events

extension FileSystemBackend: InotifyListener, TimerOwner {
  func fileNoticed(_ notice: InotifyWatch.Notice, by watch: InotifyWatch) {
    guard let part = part(of: watch) else { return }
    // After the client has closed the descriptor there is no status, only the notice.
    let status = FileStatus(of: descriptor)
    switch part {
    case .parent:
      guard notice.concernsEntry, notice.contains(Int32(IN_DELETE)), let status else { return }
      report { $0.linksChanged(status) }
    case .own:
      if notice.concernsEntry { entryNoticed(notice, status) } else { selfNoticed(notice, status, by: watch) }
    }
  }

  private func entryNoticed(_ notice: InotifyWatch.Notice, _ status: FileStatus?) {
    // A change inside of an entry is none of the directory.
    guard notice.contains(IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO), let status else { return }
    let isDirectory = notice.contains(Int32(IN_ISDIR)) && notice.contains(IN_CREATE | IN_DELETE)
    report { $0.entriesChanged(status, isDirectory: isDirectory) }
  }

  private func selfNoticed(_ notice: InotifyWatch.Notice, _ status: FileStatus?, by watch: InotifyWatch) {
    report { observation in
      var events = DispatchSource.FileSystemEvent()
      if notice.contains(IN_MODIFY), let status { events.formUnion(observation.contentChanged(status)) }
      if notice.contains(IN_ATTRIB), let status { events.formUnion(observation.attributesChanged(status)) }
      if notice.contains(IN_DELETE_SELF) { events.formUnion(observation.deleted()) }
      if notice.contains(IN_MOVE_SELF) { events.insert(.rename) }
      if notice.contains(Int32(IN_UNMOUNT)) { events.insert(.revoke) }
      return events
    }
    // The kernel drops its watch with the last name, though the file can still be written to.
    let isDropped = notice.contains(Int32(IN_IGNORED)) && status != nil
    if notice.contains(IN_MOVE_SELF) || isDropped { observeAnew(own: isDropped ? watch : nil) }
  }

  /// The directory has moved, or the kernel has dropped the watch `own`.
  private func observeAnew(own: InotifyWatch?) {
    guard own.map(join) ?? true, observeParent() else { return observeBySampling() }
    // What happened before the new watch was there.
    if let status = FileStatus(of: descriptor) { report { $0.overlooked(status) } }
  }

  func noticesLost() {
    let status = FileStatus(of: descriptor)
    report(alsoRaising: [.write, .attrib]) { observation in status.map { observation.compare($0) } ?? [] }
  }

  func timerIsDue(_ timer: LoopTimer) {
    if let status = FileStatus(of: descriptor, withPath: mask.contains(.rename)) {
      report { $0.compare(status) }
    }
    setTimer(timer)
  }
}

// SAFETY: the guards above; the rest is constant.
extension FileSystemBackend: @unchecked Sendable {}
