import Glibc

// What names lead to, and what becomes of them.
extension Follower {
  func add(_ path: Bytes, isArgument: Bool) {
    let name = FollowedName(path, isArgument: isArgument)
    names.append(name)
    places[path] = name
    // First listen, then look: what happens in between is heard.
    if isArgument { watch(path.parent) }
    check(name)
  }

  /// Finds out what has become of the name, and acts on it.
  func check(_ name: FollowedName) {
    let fate = Fate.of(open: name.file?.identity, now: Sight.at(name.path))
    switch fate {
    case .unsuitable(isDirectory: true): break
    case .same, .appeared, .missing, .gone, .replaced, .unsuitable(isDirectory: false):
      if name.isDirectory { leaveDirectory(name) }
    }
    switch fate {
    case .same:
      if let file = name.file { look(at: file) }
    case .appeared(let identity):
      open(name, identity, after: nil)
    case .replaced(let identity):
      let old = retire(name)
      say(name.path, "replaced, following the new file")
      open(name, identity, after: old)
    case .gone(let error):
      _ = retire(name)
      setState(.missing(error), of: name)
    case .missing(let error):
      setState(.missing(error), of: name)
    case .unsuitable(let isDirectory):
      _ = retire(name)
      if isDirectory && name.isArgument { list(name) } else { setState(.unsuitable, of: name) }
    }
  }

  private func open(_ name: FollowedName, _ identity: FileIdentity, after old: OpenFile?) {
    if let file = files[identity] { return adopt(file, by: name) }
    let wasUnreadable = name.state == .missing(EACCES)
    let isNew = !isStarting && !wasUnreadable
    let file = OpenFile(
      name.path, lastLines: isNew ? nil : options.lines, isCatchingUp: isStarting, queue: queue
    ) { [weak self] file, event in self?.changed(file, event) }
    guard let file else { return setState(.missing(errno), of: name) }
    if let known = files[file.identity] {
      // The name has passed to a file that is followed already, between the two looks.
      file.end()
      return adopt(known, by: name)
    }
    if case .missing = name.state { say(name.path, "is there") }
    name.state = .present
    name.file = file
    files[file.identity] = file
    if isStarting { noteCatchingUp() }
    if let old, !old.isClosed {
      old.successor = file
      file.isHeld = true
      look(at: old)
    }
    look(at: file)
  }

  /// The name leads to a file that is followed under another name, or was until now.
  private func adopt(_ file: OpenFile, by name: FollowedName) {
    if let owner = places[file.name], owner.file === file, owner !== name {
      if case .file(file.identity, _) = Sight.at(owner.path) {
        return setState(.otherName(of: owner.path), of: name)
      }
      // Renamed: it keeps its place and goes on under the new name.
      owner.file = nil
      name.file = file
      file.name = name.path
      name.state = .present
      say(owner.path, "is now \(name.path.text)")
      check(owner)
    } else {
      name.file = file
      file.name = name.path
      name.state = .present
    }
    file.retiredSince = nil
    look(at: file)
  }

  /// The file has lost its name. Whoever has it open may still write to it: it is followed for a while.
  private func retire(_ name: FollowedName) -> OpenFile? {
    guard let file = name.file else { return nil }
    name.file = nil
    file.retiredSince = .now()
    look(at: file)
    scheduleRecheck()
    return file
  }

  func setState(_ state: FollowedName.State, of name: FollowedName) {
    guard name.state != state else { return }
    let wasPresent = name.state == .present
    name.state = state
    switch state {
    case .unknown, .present: break
    case .otherName(let other): say(name.path, "is the same file as \(other.text)")
    case .missing(ENOENT) where wasPresent:
      say(name.path, name.isArgument ? "is gone, waiting for it" : "is gone")
    case .missing(let error):
      say(name.path, describe(errno: error) + (name.isArgument || error != ENOENT ? ", waiting for it" : ""))
    case .unsuitable:
      if name.isArgument { say(name.path, "is no regular file, waiting for one") }
    }
    if name.needsRecheck { scheduleRecheck() }
  }

  private func changed(_ file: OpenFile, _ event: DispatchSource.FileSystemEvent) {
    guard !isStopping else { return }
    look(at: file)
    if !event.isDisjoint(with: [.delete, .link, .rename, .attrib, .revoke]), let name = places[file.name],
      name.file === file
    {
      check(name)
    }
    turn()
  }
}
