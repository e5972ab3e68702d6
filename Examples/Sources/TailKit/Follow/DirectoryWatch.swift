import Glibc

/// A directory that is open, and told of when names in it come, go or change hands.
// SAFETY: constants; a source may be used from any thread.
final class DirectoryWatch: @unchecked Sendable {
  private let identity: Identity
  private let source: any DispatchSourceFileSystemObject

  private struct Identity: Equatable {
    let device: UInt64
    let inode: UInt64

    init?(_ result: Int32, _ status: stat) {
      guard result == 0, status.st_mode & S_IFMT == S_IFDIR else { return nil }
      device = UInt64(status.st_dev)
      inode = UInt64(status.st_ino)
    }
  }

  /// - Parameter changed: called on `queue`.
  init?(_ path: Bytes, queue: DispatchQueue, changed: @escaping @Sendable () -> Void) {
    let descriptor = path.withCPath { open($0, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
    guard descriptor >= 0 else { return nil }
    var status = stat()
    guard let identity = Identity(fstat(descriptor, &status), status) else {
      close(descriptor)
      return nil
    }
    self.identity = identity
    source = DispatchSource.makeFileSystemObjectSource(
      fileDescriptor: descriptor, eventMask: [.write, .delete, .rename, .attrib, .revoke], queue: queue)
    source.setEventHandler(handler: changed)
    source.setCancelHandler { close(descriptor) }
    source.activate()
  }

  deinit { source.cancel() }

  /// Whether the path still leads to this directory.
  func isStill(at path: Bytes) -> Bool {
    var status = stat()
    return Identity(path.withCPath { stat($0, &status) }, status) == identity
  }

  /// The names of the entries, without `.` and `..`; nil if they cannot be read.
  static func entries(of path: Bytes) -> [Bytes]? {
    guard let stream = path.withCPath({ opendir($0) }) else { return nil }
    defer { closedir(stream) }
    var names: [Bytes] = []
    while let entry = readdir(stream) {
      // SAFETY: the name is copied from the stream's own buffer before the next readdir.
      let start = UnsafeRawPointer(entry).advanced(by: MemoryLayout<dirent>.offset(of: \.d_name)!)
        .assumingMemoryBound(to: UInt8.self)
      let name = Bytes(UnsafeBufferPointer(start: start, count: strlen(start)))
      if name != Bytes(".".utf8) && name != Bytes("..".utf8) { names.append(name) }
    }
    return names
  }
}
