import Glibc

/// Which file it is, whatever its name: no other one has the same while it exists or is open.
package struct FileIdentity: Hashable, Sendable {
  package let device: UInt64
  package let inode: UInt64

  package init(device: UInt64, inode: UInt64) {
    self.device = device
    self.inode = inode
  }
}

/// What a path leads to at the moment.
package enum Sight: Equatable, Sendable {
  /// Something that lines can be read from again and again.
  case file(FileIdentity, size: Int64)
  case directory
  /// A pipe, a socket, a device: not what this program is for.
  case other
  /// Nothing that can be reached; the error number says why.
  case nothing(Int32)

  static func at(_ path: Bytes) -> Sight {
    var status = stat()
    return path.withCPath { stat($0, &status) } == 0 ? Sight(status) : .nothing(errno)
  }

  /// The same for an open file.
  static func of(_ descriptor: Int32) -> Sight {
    var status = stat()
    return fstat(descriptor, &status) == 0 ? Sight(status) : .nothing(errno)
  }

  private init(_ status: stat) {
    switch status.st_mode & S_IFMT {
    case S_IFREG:
      let identity = FileIdentity(device: UInt64(status.st_dev), inode: UInt64(status.st_ino))
      self = .file(identity, size: Int64(status.st_size))
    case S_IFDIR: self = .directory
    default: self = .other
    }
  }
}
