internal import Glibc

/// What has happened to a file, concluded from what was known of it and what is found now. Pure.
///
/// The kernel's notices say which side of the file to look at, no more: one and the same notice stands for
/// a change of the mode and of the number of links. What a notice does not concern stays as it was known,
/// so that the notice that does, and that may wait behind it, still finds the difference.
struct FileObservation {
  private var known: FileStatus

  private static let deletionMark = " (deleted)".utf8

  init(_ status: FileStatus) { known = status }

  /// The content has changed.
  mutating func contentChanged(_ now: FileStatus) -> DispatchSource.FileSystemEvent {
    defer { (known.size, known.modified) = (now.size, now.modified) }
    return now.size > known.size && !now.isDirectory ? [.write, .extend] : .write
  }

  /// Something about the file has changed: mode, owner, times, number of links.
  mutating func attributesChanged(_ now: FileStatus) -> DispatchSource.FileSystemEvent {
    let ofLinks = linksChanged(now)
    defer { noteAttributes(now) }
    // What cannot be seen, an extended attribute perhaps, has changed if nothing that can has.
    return ofLinks.isEmpty || attributesDiffer(now) ? ofLinks.union(.attrib) : ofLinks
  }

  /// An entry of the directory has come or gone.
  /// - Parameter isDirectory: the entry was a directory, made or removed, not moved.
  mutating func entriesChanged(_ now: FileStatus, isDirectory: Bool) -> DispatchSource.FileSystemEvent {
    // Some file systems do not count subdirectories among the links.
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

  /// The last name has gone; said once, if the number of links did not say it before.
  mutating func deleted() -> DispatchSource.FileSystemEvent {
    guard known.links != 0 else { return [] }
    known.links = 0
    return [.link, .delete]
  }

  /// For a moment nobody would have given notice of the content and the links.
  mutating func overlooked(_ now: FileStatus) -> DispatchSource.FileSystemEvent {
    let ofLinks = linksChanged(now)
    guard now.size != known.size || now.modified != known.modified else { return ofLinks }
    return ofLinks.union(contentChanged(now))
  }

  /// Anything may have changed: nobody gave notice.
  mutating func compare(_ now: FileStatus) -> DispatchSource.FileSystemEvent {
    var events = overlooked(now)
    if attributesDiffer(now) { events.insert(.attrib) }
    if let path = now.path {
      // A name that has gone leaves a path that says so: that is no renaming.
      if path != known.path && !path.ends(with: Self.deletionMark) { events.insert(.rename) }
      known.path = path
    }
    // A time that cannot be explained otherwise is a change that cannot be seen.
    if now.changed != known.changed && events.isEmpty { events.insert(.attrib) }
    noteAttributes(now)
    return events
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

/// What the system says of an open file, as far as events follow from it.
struct FileStatus: Equatable {
  var isDirectory = false
  var size: Int64 = 0
  var links: UInt64 = 1
  var mode: UInt32 = 0
  var owner: UInt32 = 0
  var group: UInt32 = 0
  /// When the content changed last, in nanoseconds.
  var modified: Int64 = 0
  /// When anything of this changed last, or the name, in nanoseconds.
  var changed: Int64 = 0
  /// Where it can be found; nil if that was not asked for, or cannot be told.
  var path: [UInt8]?

  /// nil if the descriptor is none.
  init?(of descriptor: Int32, withPath: Bool = false) {
    var found = stat()
    guard System.call(.status, { System.result(fstat(descriptor, &found)) }) >= 0 else { return nil }
    isDirectory = found.st_mode & S_IFMT == S_IFDIR
    size = Int64(found.st_size)
    links = UInt64(found.st_nlink)
    mode = found.st_mode
    owner = found.st_uid
    group = found.st_gid
    modified = Self.nanoseconds(found.st_mtim)
    changed = Self.nanoseconds(found.st_ctim)
    if withPath { path = Self.path(of: descriptor) }
  }

  init() {}

  private static func nanoseconds(_ time: timespec) -> Int64 {
    // Wraps for dates that do not fit; only differences are looked for.
    Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
  }

  private static func path(of descriptor: Int32) -> [UInt8]? {
    // SAFETY: the buffer stays inside of the closure, and only what the kernel wrote is read.
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(PATH_MAX)) { buffer in
      let length = System.call(.status) {
        System.result(readlink("/proc/thread-self/fd/\(descriptor)", buffer.baseAddress!, buffer.count))
      }
      guard length > 0 else { return nil }
      return buffer.prefix(length).map { UInt8(bitPattern: $0) }
    }
  }
}
