internal import CConcourse
internal import Glibc

/// A descriptor that the I/O road works with, and what is known of it.
struct OpenFile {
  /// How one waits for it.
  enum Road {
    /// Pipes, sockets, terminals: it says when it is ready.
    case readiness
    /// Files and disks: it is always ready, and a call takes as long as the disk does.
    case file
  }

  let descriptor: Int32
  let road: Road
  /// Whether it was opened for a channel, which closes it then.
  let isOwn: Bool
  /// Whether it was made non-blocking here.
  private let wasBlocking: Bool

  /// Takes a descriptor over.
  /// - Returns: nil and the errno if it is none, or a directory.
  static func adopt(_ descriptor: Int32, isOwn: Bool) -> (file: OpenFile?, error: Int32) {
    var status = stat()
    let failure = System.call(.status) { System.result(fstat(descriptor, &status)) }
    guard failure == 0 else { return (nil, Int32(-failure)) }
    let road: Road
    switch status.st_mode & S_IFMT {
    case S_IFDIR: return (nil, EISDIR)
    case S_IFREG, S_IFBLK: road = .file
    default: road = .readiness
    }
    var wasBlocking = false
    if road == .readiness {
      let flags = System.call(.control) { System.result(fcntl(descriptor, F_GETFL)) }
      // If it cannot be made non-blocking, its calls may take long: the pool's affair, not the client's.
      if flags >= 0 && flags & Int(O_NONBLOCK) == 0 {
        wasBlocking = setFlags(descriptor, Int32(flags) | O_NONBLOCK)
      }
    }
    return (OpenFile(descriptor: descriptor, road: road, isOwn: isOwn, wasBlocking: wasBlocking), 0)
  }

  /// Gives it back: as it was, or closed.
  func giveBack() {
    if isOwn {
      // Not again after an interruption: the number may be somebody else's by then.
      let failure = System.call(.close) {
        let result = System.result(Glibc.close(descriptor))
        return result == -Int(EINTR) ? 0 : result
      }
      if failure == -Int(EBADF) {
        Trap.clientBug(
          "descriptor \(descriptor) of a DispatchIO channel made from a path was closed by others")
      }
    } else if wasBlocking {
      let flags = System.call(.control) { System.result(fcntl(descriptor, F_GETFL)) }
      if flags >= 0 { _ = Self.setFlags(descriptor, Int32(flags) & ~O_NONBLOCK) }
    }
  }

  /// The file's position.
  /// - Returns: the errno, negated, for what has none.
  static func position(_ descriptor: Int32) -> Int {
    System.call(.seek) { System.result(lseek(descriptor, 0, SEEK_CUR)) }
  }

  private static func setFlags(_ descriptor: Int32, _ flags: Int32) -> Bool {
    System.call(.control) { System.result(fcntl(descriptor, F_SETFL, flags)) } >= 0
  }
}

/// A file to be opened when it is first needed.
struct UnopenedFile {
  let path: String
  let flags: Int32
  let mode: mode_t

  /// Opens it. May take long: a pipe waits for its other end.
  func open() -> (file: OpenFile?, error: Int32) {
    var descriptor = 0
    BlockedSection.run {
      descriptor = System.call(.open) { System.result(Glibc.open(path, flags | O_CLOEXEC, mode)) }
    }
    guard descriptor >= 0 else { return (nil, Int32(-descriptor)) }
    let (file, error) = OpenFile.adopt(Int32(descriptor), isOwn: true)
    if file == nil { Glibc.close(Int32(descriptor)) }
    return (file, error)
  }

  /// Whether opening it is bound to fail, as far as can be told without opening it: a directory, a missing
  /// file, or a missing directory for a file that is to be made.
  /// - Returns: 0 or the errno.
  func lookUp() -> Int32 {
    var status = stat()
    let failure = System.call(.status) {
      System.result(flags & O_NOFOLLOW != 0 ? lstat(path, &status) : stat(path, &status))
    }
    if failure == 0 { return status.st_mode & S_IFMT == S_IFDIR ? EISDIR : 0 }
    guard flags & O_CREAT != 0 else { return Int32(-failure) }
    let slash = path.lastIndex(of: "/")!
    let parent = slash == path.startIndex ? "/" : String(path[..<slash])
    return Int32(-System.call(.status) { System.result(stat(parent, &status)) })
  }
}
