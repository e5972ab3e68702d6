import Glibc

/// Which of the names in a directory the search wants.
struct Selection: Sendable {
  var followsSymbolicLinks = false
  var minimumSize: Int64 = 1
}

/// Reads one directory: its files go to the index, its subdirectories back to the walk.
struct DirectoryScan {
  private let path: Bytes
  private let selection: Selection
  private let index: Index
  private let findings: Findings

  /// Paths of the directories below this one.
  private(set) var subdirectories: [Bytes] = []

  /// Paths of symbolic links that lead to directories (only when links are followed).
  private(set) var linkedDirectories: [Bytes] = []

  private var names: Bytes = []
  private var records: [FileRecord] = []

  /// - Parameter path: the directory, with a `/` at its end.
  init(_ path: Bytes, _ selection: Selection, into index: Index, _ findings: Findings) {
    self.path = path
    self.selection = selection
    self.index = index
    self.findings = findings
  }

  /// - Parameter stream: open on `path`; the caller closes it.
  mutating func read(_ stream: OpaquePointer, until cancellation: Cancellation) {
    let descriptor = dirfd(stream)
    while !cancellation.isCancelled {
      errno = 0  // readdir reports its end and its errors alike with nil; only errno tells them apart
      guard let entry = readdir(stream) else {
        if errno != 0 { findings.skip(path, .system(errno: errno)) }
        break
      }
      // SAFETY: the name is read in place, from the stream's own buffer, before the next readdir. Copying
      // `entry.pointee` would copy 280 bytes, of which some may lie beyond the end of a short entry.
      let name = UnsafeRawPointer(entry).advanced(by: DirectoryScan.nameOffset)
        .assumingMemoryBound(to: CChar.self)
      if name[0] == DirectoryScan.dot && (name[1] == 0 || (name[1] == DirectoryScan.dot && name[2] == 0)) {
        continue
      }
      // SAFETY: as above; the type is a byte at a fixed place of the entry.
      let type = UnsafeRawPointer(entry).load(fromByteOffset: DirectoryScan.typeOffset, as: UInt8.self)
      take(name, Int(type), in: descriptor)
      if records.count == DirectoryScan.batch { deliver() }
    }
    deliver()
  }

  /// Looks at one entry. The type that came with the name often saves the call that asks for the status.
  private mutating func take(_ name: UnsafePointer<CChar>, _ type: Int, in descriptor: Int32) {
    switch type {
    case Int(DT_DIR):
      subdirectories.append(path + DirectoryScan.bytes(name) + [DirectoryScan.slash])
    case Int(DT_REG), Int(DT_UNKNOWN):
      takeStatus(of: name, flags: AT_SYMLINK_NOFOLLOW, isSymbolicLink: false, in: descriptor)
    case Int(DT_LNK) where selection.followsSymbolicLinks:
      takeStatus(of: name, flags: 0, isSymbolicLink: true, in: descriptor)
    default:
      break  // a symbolic link not followed, a pipe, a socket, a device: no duplicate of anything
    }
  }

  private mutating func takeStatus(
    of name: UnsafePointer<CChar>, flags: Int32, isSymbolicLink: Bool, in descriptor: Int32
  ) {
    var status = stat()
    guard fstatat(descriptor, name, &status, flags) == 0 else {
      findings.skip(path + DirectoryScan.bytes(name), .system(errno: errno))
      return
    }
    switch status.st_mode & S_IFMT {
    case S_IFREG:
      guard Int64(status.st_size) >= selection.minimumSize else { return }
      records.append(FileRecord(status, name: names.count, isSymbolicLink: isSymbolicLink))
      names.append(contentsOf: DirectoryScan.buffer(name))
      names.append(0)
    case S_IFDIR where isSymbolicLink:
      linkedDirectories.append(path + DirectoryScan.bytes(name) + [DirectoryScan.slash])
    case S_IFDIR:
      subdirectories.append(path + DirectoryScan.bytes(name) + [DirectoryScan.slash])
    case S_IFLNK where selection.followsSymbolicLinks:
      // Only a file system that does not tell types gets here.
      takeStatus(of: name, flags: 0, isSymbolicLink: true, in: descriptor)
    default:
      break
    }
  }

  private mutating func deliver() {
    guard !records.isEmpty else { return }
    index.add(records, of: Listing(directory: path, names: names))
    records = []
    names = []
  }

  /// So many files are handed over at once at most: a directory of a million files must not be held twice.
  private static let batch = 8192

  private static let dot = CChar(UInt8(ascii: "."))
  private static let slash = UInt8(ascii: "/")
  private static let nameOffset = MemoryLayout<dirent>.offset(of: \.d_name)!
  private static let typeOffset = MemoryLayout<dirent>.offset(of: \.d_type)!

  // SAFETY: a C string's CChars are read as the UInt8s of the same layout, within the string's length.
  private static func buffer(_ name: UnsafePointer<CChar>) -> UnsafeBufferPointer<UInt8> {
    UnsafeBufferPointer(
      start: UnsafeRawPointer(name).assumingMemoryBound(to: UInt8.self), count: strlen(name))
  }

  private static func bytes(_ name: UnsafePointer<CChar>) -> Bytes {
    Bytes(buffer(name))
  }
}
