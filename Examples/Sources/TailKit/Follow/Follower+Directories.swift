import Glibc

// Directories tell of their names; those that the user named are followed with all their files.
extension Follower {
  /// Listens to a directory, if it is there, and if that is not done already.
  func watch(_ path: Bytes) {
    if let watch = directories[path], watch.isStill(at: path) { return }
    directories[path] = DirectoryWatch(path, queue: queue) { [weak self] in self?.directoryChanged(path) }
    if directories[path] == nil { scheduleRecheck() }
  }

  private func directoryChanged(_ path: Bytes) {
    guard !isStopping else { return }
    watch(path)
    if let name = places[path], name.isDirectory { list(name) }
    for name in names where name.path.parent == path { check(name) }
    forgetMissing()
    turn()
  }

  /// Follows what is in a directory that the user named.
  func list(_ directory: FollowedName) {
    directory.isDirectory = true
    if case .missing = directory.state { say(directory.path, "is there") }
    watch(directory.path)
    guard let entries = DirectoryWatch.entries(of: directory.path) else {
      return setState(.missing(errno), of: directory)
    }
    directory.state = .present
    for entry in entries.sorted(by: { $0.lexicographicallyPrecedes($1) }) where isWanted(entry) {
      let path = directory.path.entry(entry)
      if places[path] == nil { add(path, isArgument: false) }
    }
  }

  func leaveDirectory(_ name: FollowedName) {
    name.isDirectory = false
    directories[name.path] = nil
    // Its files are gone as well, or have a new path that nobody named.
    for other in names where other.path.parent == name.path && !other.isArgument { check(other) }
  }

  private func isWanted(_ entry: Bytes) -> Bool {
    options.patterns.isEmpty
      || options.patterns.contains { pattern in
        pattern.withCPath { pattern in entry.withCPath { fnmatch(pattern, $0, 0) == 0 } }
      }
  }

  /// Names found in directories are not waited for.
  func forgetMissing() {
    names.removeAll { name in
      guard !name.isArgument, name.file == nil, case .missing(ENOENT) = name.state else { return false }
      places[name.path] = nil
      return true
    }
  }
}
