internal import Glibc

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
