import Glibc

/// A file that is open: what tells of changes to it, what reads it, and how far it has been read.
///
/// The descriptor has two users, a source and a channel. Each lets go of it in its own time, and only then
/// may it be closed: its number could be given to another file at once.
// SAFETY: the variables are OWNED BY the follower's queue, on which all methods are called.
final class OpenFile: @unchecked Sendable {
  /// What is to be done next with it.
  enum Work {
    /// Looking for the last lines.
    case scan(BackwardScan)
    /// Reading on from `readTo`.
    case read
  }

  let identity: FileIdentity
  /// Whose lines these are; the name may pass on when the file is renamed inside of a directory.
  var name: Bytes
  var work: Work
  var readTo: Int64 = 0
  var lines = LineAssembler()

  /// Whether a read is under way, and whether it waits for its turn.
  var isBusy = false
  var isQueued = false
  /// Whether it has been read at all.
  var hasBegun = false
  /// Until its end is reached for the first time, when it was there from the start.
  var isCatchingUp: Bool
  /// While the file that had the name before has not been read to its end.
  var isHeld = false
  /// Which file that is for another one.
  var successor: OpenFile?
  /// Since when nothing has come, for a file that has lost its name.
  var retiredSince: DispatchTime?
  private(set) var isClosed = false

  private let descriptor: Int32
  private let queue: DispatchQueue
  private let source: any DispatchSourceFileSystemObject
  private let channel: DispatchIO

  /// - Parameters:
  ///   - lastLines: how many lines to begin with; nil for all.
  ///   - changed: called on `queue` when something has happened to the file.
  init?(
    _ path: Bytes, lastLines: Int?, isCatchingUp: Bool, queue: DispatchQueue,
    changed: @escaping @Sendable (OpenFile, DispatchSource.FileSystemEvent) -> Void
  ) {
    // Not blocking: should the name have become a pipe's meanwhile, nobody waits for its other end.
    descriptor = path.withCPath { open($0, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) }
    guard descriptor >= 0 else { return nil }
    guard case .file(let identity, let size) = Sight.of(descriptor) else {
      close(descriptor)
      // What became of the name will be looked at again.
      errno = EAGAIN
      return nil
    }
    self.identity = identity
    self.queue = queue
    self.isCatchingUp = isCatchingUp
    name = path
    work = lastLines == nil ? .read : .scan(BackwardScan(size: size, lines: lastLines))

    let descriptor = descriptor
    let users = DispatchGroup()
    users.enter()
    channel = DispatchIO(type: .random, fileDescriptor: descriptor, queue: queue) { _ in users.leave() }
    // One call of the handler for each read: the pump counts reads.
    channel.setLimit(lowWater: .max)
    source = DispatchSource.makeFileSystemObjectSource(
      fileDescriptor: descriptor, eventMask: .all, queue: queue)
    users.enter()
    source.setCancelHandler { users.leave() }
    users.notify(queue: queue) { close(descriptor) }
    source.setEventHandler { [weak self] in
      guard let self, !isClosed else { return }
      changed(self, source.data)
    }
    // From here on nothing is missed: what happens before the first look at the size is found by it.
    source.activate()
  }

  /// The size at the moment; nil if even that cannot be told.
  var size: Int64? {
    if case .file(_, let size) = Sight.of(descriptor) { size } else { nil }
  }

  /// Reads, and calls `completion` once, on the queue.
  func read(
    at offset: Int64, _ length: Int, completion: @escaping @Sendable (DispatchData, Int32) -> Void
  ) {
    var all = DispatchData.empty
    channel.read(offset: off_t(offset), length: length, queue: queue) { done, data, error in
      if let data { all.append(data) }
      if done { completion(all, error) }
    }
  }

  /// Lets go of the file. The source and the channel keep themselves alive until they have.
  func end() {
    guard !isClosed else { return }
    isClosed = true
    source.cancel()
    channel.close()
  }
}
