internal import Glibc

/// A descriptor that channels use. Channels take it over and give it back.
struct OpenFile {
  /// How to wait for it.
  enum Road {
    /// Pipes, sockets, terminals: the kernel reports when it is ready.
    case readiness
    /// Files and disks: always ready, and a call takes as long as the disk does.
    case file
  }

  let descriptor: Int32
  let road: Road
  /// Whether a channel opened it, and therefore closes it.
  let isOwn: Bool
  let identity: Identity
  /// Whether the channel that gives it back must make it blocking again.
  var wasBlocking: Bool

  /// The same for all descriptors of a file, pipe, socket or terminal.
  struct Identity: Hashable {
    var device: dev_t = 0
    var number: ino_t = 0
  }

  /// What the status of a descriptor says.
  struct Kind {
    let road: Road
    let identity: Identity
  }

  /// Looks at a descriptor and takes it over.
  /// - Returns: nil and the errno if the descriptor is bad or a directory.
  static func adopt(_ descriptor: Int32, isOwn: Bool) -> (file: OpenFile?, error: Int32) {
    let (kind, error) = kind(of: descriptor)
    guard let kind else { return (nil, error) }
    return (adopt(descriptor, kind, isOwn: isOwn), 0)
  }

  /// Looks how to wait for a descriptor. May take long: a file's server may not answer.
  /// - Returns: nil and the errno if the descriptor is bad or a directory.
  static func kind(of descriptor: Int32) -> (kind: Kind?, error: Int32) {
    var status = stat()
    let failure = System.status(of: descriptor, &status)
    guard failure == 0 else { return (nil, Int32(-failure)) }
    let identity = Identity(device: status.st_dev, number: status.st_ino)
    switch status.st_mode & S_IFMT {
    case S_IFDIR: return (nil, EISDIR)
    case S_IFREG, S_IFBLK: return (Kind(road: .file, identity: identity), 0)
    default: return (Kind(road: .readiness, identity: identity), 0)
    }
  }

  /// Takes a descriptor over, and makes it non-blocking if the kernel reports its readiness.
  static func adopt(_ descriptor: Int32, _ kind: Kind, isOwn: Bool) -> OpenFile {
    var wasBlocking = false
    if kind.road == .readiness {
      let flags = System.flags(of: descriptor)
      // If that fails, calls may block a worker; the operations work all the same.
      if flags >= 0 && flags & Int(O_NONBLOCK) == 0 {
        wasBlocking = System.setFlags(of: descriptor, to: Int32(flags) | O_NONBLOCK) >= 0
      }
    }
    return OpenFile(
      descriptor: descriptor, road: kind.road, isOwn: isOwn, identity: kind.identity, wasBlocking: wasBlocking
    )
  }

  /// Closes a descriptor that a channel opened. Makes a client's descriptor blocking again if it was.
  func giveBack() {
    if isOwn {
      if System.close(descriptor) == -Int(EBADF) {
        Trap.clientBug(
          609,
          "descriptor \(descriptor) of a DispatchIO channel made from a path was closed by others")
      }
    } else if wasBlocking {
      let flags = System.flags(of: descriptor)
      if flags >= 0 { _ = System.setFlags(of: descriptor, to: Int32(flags) & ~O_NONBLOCK) }
    }
  }
}

/// A file that is opened when it is first needed.
struct UnopenedFile {
  /// An absolute path and a 0 byte. Its bytes need not be UTF-8.
  let path: [CChar]
  let flags: Int32
  let mode: mode_t

  /// Opens it. May take long: a FIFO waits for its other end.
  func open() -> (file: OpenFile?, error: Int32) {
    var descriptor = 0
    BlockedSection.run(.opening, nil) { descriptor = System.open(path, flags | O_CLOEXEC, mode) }
    guard descriptor >= 0 else { return (nil, Int32(-descriptor)) }
    let (file, error) = OpenFile.adopt(Int32(descriptor), isOwn: true)
    if file == nil { _ = System.close(Int32(descriptor)) }
    return (file, error)
  }

  /// Looks for reasons why opening it must fail: a directory, a missing file, or a missing directory for a file to be
  /// created.
  /// - Returns: 0 or the errno.
  func lookUp() -> Int32 {
    var status = stat()
    let failure = System.status(ofPath: path, followsLinks: flags & O_NOFOLLOW == 0, &status)
    if failure == 0 { return status.st_mode & S_IFMT == S_IFDIR ? EISDIR : 0 }
    guard flags & O_CREAT != 0 else { return Int32(-failure) }
    let slash = path.lastIndex(of: 0x2F)!
    let parent: [CChar] = slash == 0 ? [0x2F, 0] : Array(path[..<slash]) + [0]
    return Int32(-System.status(ofPath: parent, followsLinks: true, &status))
  }
}
