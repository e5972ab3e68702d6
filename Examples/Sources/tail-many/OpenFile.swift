import ExampleSupport
import Glibc

/// Which file it is, whatever its name.
struct FileIdentity: Equatable, Sendable {
  let device: UInt64
  let inode: UInt64
}

/// Where a path leads at the moment.
enum Target: Equatable {
  case file(FileIdentity)
  /// To nothing that can be followed, with the errno that says why.
  case none(Int32)

  init(of path: Bytes) {
    var status = stat()
    self = path.withCString { stat($0, &status) } == 0 ? Target(status) : .none(errno)
  }

  init(_ status: stat) {
    switch status.st_mode & S_IFMT {
    case S_IFREG: self = .file(FileIdentity(device: UInt64(status.st_dev), inode: UInt64(status.st_ino)))
    case S_IFDIR: self = .none(EISDIR)
    default: self = .none(EOPNOTSUPP)
    }
  }
}

/// An open file: the source that reports changes, the channel that reads, and how far it has been read.
///
/// The descriptor has two users, the source and the channel. It is closed when both have released it: closed earlier,
/// its number could be given to another file.
// SAFETY: the variables are OWNED BY the follower's queue, on which all methods are called.
final class OpenFile: @unchecked Sendable {
  let identity: FileIdentity
  /// How far it has been read.
  private(set) var offset = 0
  var lines = LineAssembler()
  /// Whether its name leads to another file.
  var isReplaced = false

  private let descriptor: Int32
  private let queue: DispatchQueue
  private let source: any DispatchSourceFileSystemObject
  private let channel: DispatchIO
  /// Before the first read of a file that is not shown from its start: how many lines to take, and of how many bytes.
  private var lastLines: (count: Int, bytes: Int)?
  /// How much is read before other files have their turn.
  private static let chunk = 1 << 16

  /// - Parameter changed: called on `queue` after a change to the file.
  /// - Returns: nil if it cannot be followed; errno says why.
  init?(
    _ path: Bytes, queue: DispatchQueue,
    changed: @escaping @Sendable (OpenFile, DispatchSource.FileSystemEvent) -> Void
  ) {
    // Not blocking: to open a pipe that has taken the file's place would wait for its writer.
    let descriptor = path.withCString { open($0, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) }
    guard descriptor >= 0 else { return nil }
    var status = stat()
    guard fstat(descriptor, &status) == 0, case .file(let identity) = Target(status) else {
      Glibc.close(descriptor)
      errno = EAGAIN
      return nil
    }
    self.descriptor = descriptor
    self.identity = identity
    self.queue = queue

    let users = DispatchGroup()
    users.enter()
    channel = DispatchIO(type: .random, fileDescriptor: descriptor, queue: queue) { _ in users.leave() }
    // One call of the handler for each read.
    channel.setLimit(lowWater: .max)
    users.enter()
    source = DispatchSource.makeFileSystemObjectSource(
      fileDescriptor: descriptor, eventMask: .all, queue: queue)
    source.setCancelHandler { users.leave() }
    users.notify(queue: queue) { Glibc.close(descriptor) }
    source.setEventHandler { [weak self] in
      if let self { changed(self, source.data) }
    }
    // From here on each change is an event; an earlier one is found by the first look at the size.
    source.activate()
  }

  var size: Int {
    var status = stat()
    return fstat(descriptor, &status) == 0 ? Int(status.st_size) : offset
  }

  /// Skips all but the last lines of what is in the file now, and of that all but the last 64 KiB.
  func beginWithLastLines(_ count: Int) {
    let size = size
    offset = max(0, size - OpenFile.chunk)
    lastLines = size == 0 ? nil : (count, size - offset)
  }

  func beginAgain() { (offset, lastLines) = (0, nil) }

  /// Reads on, `count` bytes or fewer.
  ///
  /// - Parameter completion: called on the queue with the lines that are complete, and an errno or 0.
  func read(_ count: Int, completion: @escaping @Sendable (DispatchData, Int32) -> Void) {
    var data = DispatchData.empty
    let length = min(count, lastLines?.bytes ?? OpenFile.chunk)
    channel.read(offset: off_t(offset), length: length, queue: queue) { [self] done, part, error in
      if let part { data.append(part) }
      guard done else { return }
      let start = lastLines.map { data.startOfLastLines($0.count, isWhole: offset == 0) } ?? 0
      lastLines = nil
      offset += data.count
      completion(lines.append(data.subdata(in: start..<data.count)), error)
    }
  }

  /// Releases the file. Source and channel keep themselves alive until they have released the descriptor.
  func close() {
    source.cancel()
    channel.close()
  }
}

/// A source on a directory: an event when names in it appear, vanish or change.
// SAFETY: constants; a source may be used on any thread.
final class DirectoryWatch: @unchecked Sendable {
  private let source: any DispatchSourceFileSystemObject

  /// - Parameter changed: called on `queue`.
  init?(
    _ path: Bytes, queue: DispatchQueue, changed: @escaping @Sendable (DispatchSource.FileSystemEvent) -> Void
  ) {
    let descriptor = path.withCString { open($0, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
    guard descriptor >= 0 else { return nil }
    source = DispatchSource.makeFileSystemObjectSource(
      fileDescriptor: descriptor, eventMask: [.write, .delete, .rename, .attrib, .revoke], queue: queue)
    source.setEventHandler { [weak self] in
      if let self { changed(self.source.data) }
    }
    source.setCancelHandler { close(descriptor) }
    source.activate()
  }

  deinit { source.cancel() }
}

extension Bytes {
  /// The directory of a path's last name.
  var parent: Bytes {
    guard let slash = lastIndex(of: UInt8(ascii: "/")) else { return Bytes(".".utf8) }
    return slash == 0 ? Bytes("/".utf8) : Bytes(self[..<slash])
  }
}
