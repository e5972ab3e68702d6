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
