import Glibc

/// Which file it is, whatever it is called: hard links to one file have one identity.
struct FileIdentity: Hashable, Sendable {
  let device: UInt64
  let inode: UInt64

  init(_ status: stat) {
    device = UInt64(status.st_dev)
    inode = UInt64(status.st_ino)
  }

  init(_ record: FileRecord) {
    device = record.device
    inode = record.inode
  }
}

/// What is kept of each name found: 40 bytes, with the path held apart (see `Listing`).
struct FileRecord: Sendable {
  let device: UInt64
  let inode: UInt64
  let size: Int64

  /// The time of the last change in nanoseconds. This is `st_ctime`, not `st_mtime`: the kernel moves it
  /// at each change of the content, and no program can set it back afterwards.
  let changed: Int64

  /// The listing that holds the name. `Index` fills it in, as it alone numbers listings.
  var listing: UInt32 = 0

  /// Where the name starts in its listing, and in the top bit whether it is a symbolic link's name.
  private let nameAndFlag: UInt32

  init(_ status: stat, name: Int, isSymbolicLink: Bool) {
    device = UInt64(status.st_dev)
    inode = UInt64(status.st_ino)
    size = Int64(status.st_size)
    changed = FileRecord.changeTime(status)
    nameAndFlag = UInt32(name) | (isSymbolicLink ? FileRecord.linkFlag : 0)
  }

  var name: Int { Int(nameAndFlag & ~FileRecord.linkFlag) }
  var isSymbolicLink: Bool { nameAndFlag & FileRecord.linkFlag != 0 }

  /// Whether `status`, taken later from an open descriptor, still shows the file that was recorded.
  func stillMatches(_ status: stat) -> Bool {
    inode == UInt64(status.st_ino) && device == UInt64(status.st_dev)
      && size == Int64(status.st_size) && changed == FileRecord.changeTime(status)
  }

  private static let linkFlag: UInt32 = 1 << 31

  private static func changeTime(_ status: stat) -> Int64 {
    Int64(status.st_ctim.tv_sec) &* 1_000_000_000 &+ Int64(status.st_ctim.tv_nsec)
  }
}

/// A file found, by its number in the index.
typealias FileID = UInt32

/// Some of the files of one directory. The directory's path is stored once here and not once per file, and
/// the names share one buffer: 50,000 names cost a few thousand allocations, not 50,000.
final class Listing: Sendable {
  /// The directory, with a `/` at its end.
  let directory: Bytes

  /// The names, each with a NUL after it.
  let names: Bytes

  init(directory: Bytes, names: Bytes) {
    self.directory = directory
    self.names = names
  }

  /// Appends directory, name and a NUL to `path`.
  func appendTerminatedPath(of record: FileRecord, to path: inout Bytes) {
    path.append(contentsOf: directory)
    // SAFETY: `record.name` is where this listing put that name, with a NUL behind it, so that both the
    // length and the bytes taken stay inside the buffer. UInt8 and CChar have the same layout.
    names.withUnsafeBufferPointer { buffer in
      let start = buffer.baseAddress! + record.name
      let length = strlen(UnsafeRawPointer(start).assumingMemoryBound(to: CChar.self))
      path.append(contentsOf: UnsafeBufferPointer(start: start, count: length + 1))
    }
  }
}
