internal import Glibc

/// Derives the events of a file from its last known status and its current one. Pure.
///
/// An inotify notice says only which part of the status to compare: one notice stands for a change of the mode and
/// for one of the number of links. The parts that a notice does not concern stay as known, so that the notice that
/// concerns them, which may be queued behind it, still finds the difference.
struct FileObservation {
  private var known: FileStatus

  private static let deletionMark = " (deleted)".utf8

  init(_ status: FileStatus) { known = status }

  /// The content has changed.
  mutating func contentChanged(_ now: FileStatus) -> DispatchSource.FileSystemEvent {
    defer { (known.size, known.modified) = (now.size, now.modified) }
    return now.size > known.size && !now.isDirectory ? [.write, .extend] : .write
  }

  /// The mode, owner, times or number of links have changed.
  mutating func attributesChanged(_ now: FileStatus) -> DispatchSource.FileSystemEvent {
    let ofLinks = linksChanged(now)
    defer { noteAttributes(now) }
    // If no visible attribute has changed, an invisible one has, such as an extended attribute.
    return ofLinks.isEmpty || attributesDiffer(now) ? ofLinks.union(.attrib) : ofLinks
  }

  /// An entry of the directory was added or removed.
  /// - Parameter isDirectory: whether the entry is a directory that was created or deleted rather than moved.
  mutating func entriesChanged(_ now: FileStatus, isDirectory: Bool) -> DispatchSource.FileSystemEvent {
    // Some file systems do not count subdirectories as links.
    let ofLinks = linksChanged(now).union(isDirectory ? .link : [])
    (known.size, known.modified) = (now.size, now.modified)
    return ofLinks.union(.write)
  }

  /// The number of links may have changed.
  mutating func linksChanged(_ now: FileStatus) -> DispatchSource.FileSystemEvent {
    defer { known.links = now.links }
    guard now.links != known.links else { return [] }
    return now.links == 0 ? [.link, .delete] : .link
  }

  /// The last name was removed. Reported here unless the number of links has reported it already.
  mutating func deleted() -> DispatchSource.FileSystemEvent {
    guard known.links != 0 else { return [] }
    known.links = 0
    return [.link, .delete]
  }

  /// The file has been renamed or moved.
  mutating func moved(_ now: FileStatus?) -> DispatchSource.FileSystemEvent {
    known.path = now?.path ?? known.path
    return .rename
  }

  /// Content and links may have changed while there was no watch.
  mutating func compareContent(_ now: FileStatus) -> DispatchSource.FileSystemEvent {
    let ofLinks = linksChanged(now)
    guard now.size != known.size || now.modified != known.modified else { return ofLinks }
    return ofLinks.union(contentChanged(now))
  }

  /// Anything may have changed, without notice.
  mutating func compare(_ now: FileStatus) -> DispatchSource.FileSystemEvent {
    let mayBeRenamed = now.isUnnamed && mayBeRenamed(now)
    var events = compareContent(now)
    if attributesDiffer(now) { events.insert(.attrib) }
    if let path = now.path {
      // A removed name leaves a path with a mark. That is not a rename.
      if path != known.path && !path.ends(with: Self.deletionMark) { events.insert(.rename) }
      known.path = path
    }
    // A new change time without another event stands for an invisible change.
    if now.changed != known.changed && events.isEmpty { events.insert(.attrib) }
    // Without /proc the names cannot be compared, and a program that waits for a rename must not wait for ever.
    if mayBeRenamed { events.insert(.rename) }
    noteAttributes(now)
    return events
  }

  /// Whether something has changed after the content that is neither a visible attribute nor the number of links. File
  /// systems give a renamed file a new change time.
  private func mayBeRenamed(_ now: FileStatus) -> Bool {
    now.changed != known.changed && now.changed != now.modified && now.links == known.links
      && !attributesDiffer(now)
  }

  private func attributesDiffer(_ now: FileStatus) -> Bool {
    (now.mode, now.owner, now.group) != (known.mode, known.owner, known.group)
  }

  private mutating func noteAttributes(_ now: FileStatus) {
    (known.mode, known.owner, known.group, known.changed) = (now.mode, now.owner, now.group, now.changed)
  }
}

extension [UInt8] {
  fileprivate func ends(with suffix: String.UTF8View) -> Bool {
    self.suffix(suffix.count).elementsEqual(suffix)
  }
}

/// The status of an open file, as far as events depend on it.
struct FileStatus: Equatable {
  var isDirectory = false
  var size: Int64 = 0
  var links: UInt64 = 1
  var mode: UInt32 = 0
  var owner: UInt32 = 0
  var group: UInt32 = 0
  /// When the content last changed, in nanoseconds.
  var modified: Int64 = 0
  /// When the status or the name last changed, in nanoseconds.
  var changed: Int64 = 0
  /// The path; nil if it was not requested or cannot be read.
  var path: [UInt8]?
  /// Whether the path was requested and cannot be read.
  var isUnnamed = false

  /// Reads the status. nil if the descriptor is not open.
  init?(of descriptor: Int32, withPath: Bool = false) {
    var found = stat()
    // The file's server may let the thread wait.
    guard BlockedSection.run({ System.status(of: descriptor, &found) >= 0 }) else { return nil }
    isDirectory = found.st_mode & S_IFMT == S_IFDIR
    size = Int64(found.st_size)
    links = UInt64(found.st_nlink)
    mode = found.st_mode
    owner = found.st_uid
    group = found.st_gid
    modified = Self.nanoseconds(found.st_mtim)
    changed = Self.nanoseconds(found.st_ctim)
    guard withPath else { return }
    path = Self.path(of: descriptor)
    isUnnamed = path == nil
  }

  init() {}

  private static func nanoseconds(_ time: timespec) -> Int64 {
    // Wraps for dates that do not fit; only equality is tested.
    Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
  }

  private static func path(of descriptor: Int32) -> [UInt8]? {
    // SAFETY: the buffer does not leave the closure, and only bytes that the kernel wrote are read.
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(PATH_MAX)) { buffer in
      let length = System.linkTarget(of: "/proc/thread-self/fd/\(descriptor)", into: buffer)
      guard length > 0 else { return nil }
      return buffer.prefix(length).map { UInt8(bitPattern: $0) }
    }
  }
}
