public import Glibc

/// A channel to a file, pipe, socket or terminal, through which bytes are read and written
/// asynchronously.
///
/// A **stream** channel reads and writes at the file's own position, one operation after another in each
/// direction. A **random** channel reads and writes at given offsets, several operations side by side.
/// While channels have a descriptor it belongs to them: it may be non-blocking, and nobody else should read,
/// write or close it. When the last channel on it has closed and its operations have ended, it is put back
/// as it was found, and the cleanup handlers run. Releasing a channel closes it. All calls may be made from
/// any thread. Lengths, offsets and marks are in bytes.
///
/// A handler that is slower than its descriptor holds its operation back once 32 MiB wait for it.
///
/// Matching C type: `dispatch_io_t`.
public class DispatchIO: DispatchObject {
  final let channel: Channel
  final let entry: DescriptorEntry

  /// How a channel goes through its file.
  public enum StreamType: UInt, Sendable {
    /// From the file's position on, one operation after another in each direction.
    case stream = 0
    /// At the offsets that operations name.
    case random = 1
  }

  /// How a channel closes.
  public struct CloseFlags: OptionSet, RawRepresentable, Sendable {
    /// The bits.
    public let rawValue: UInt
    /// A set from its bits.
    public init(rawValue: UInt) { self.rawValue = rawValue }
    /// Operations that have not ended end early. Matching C constant: `DISPATCH_IO_STOP`.
    public static let stop = CloseFlags(rawValue: 1)
  }

  /// What an interval means.
  public struct IntervalFlags: OptionSet, RawRepresentable, Sendable {
    /// The bits.
    public let rawValue: UInt
    /// A set from its bits.
    public init(rawValue: UInt) { self.rawValue = rawValue }
    /// The empty set.
    public init(nilLiteral: ()) { rawValue = 0 }
    /// Handlers are called every interval, even with less than the low-water mark or with nothing.
    /// Matching C constant: `DISPATCH_IO_STRICT_INTERVAL`.
    public static let strictInterval = IntervalFlags(rawValue: 1)
  }

  init(_ channel: Channel, _ entry: DescriptorEntry) {
    self.channel = channel
    self.entry = entry
    super.init(kind: .channel)
  }

  deinit {
    // Handlers that are still to be called may use the context.
    uncountedExtrasIfAny?._withUnsafeGuaranteedRef { if $0.hasFinalizer { channel.keep($0) } }
    entry.close(channel, stopping: false)
  }

  /// Makes a channel to a descriptor, which belongs to channels until the cleanup handler runs.
  ///
  /// Matching C function: `dispatch_io_create`.
  /// - Parameters:
  ///   - type: stream or random; random offsets count from the descriptor's position now.
  ///   - fileDescriptor: the descriptor.
  ///   - queue: where the cleanup handler and the channel's barriers run.
  ///   - cleanupHandler: called once, when the descriptor is given back, after every handler of the
  ///     operations on it, with 0; or at once with the errno if there is no channel to be had: `EBADF` for a
  ///     bad descriptor, `ESPIPE` for a random channel to what has no position.
  public convenience init(
    type: DispatchIO.StreamType, fileDescriptor: dispatch_fd_t, queue: DispatchQueue,
    cleanupHandler: @escaping (_ error: Int32) -> Void
  ) {
    let position = type == .random ? OpenFile.position(fileDescriptor) : 0
    let channel = Channel(type, base: max(0, position), queue, cleanupHandler)
    if position < 0 {
      self.init(channel, failing: Int32(-position))
    } else {
      self.init(channel, DescriptorTable.attach(channel, to: fileDescriptor))
    }
  }

  /// Makes a channel to the file of a path, which is opened with the first operation and closed before the
  /// cleanup handler runs.
  ///
  /// Matching C function: `dispatch_io_create_with_path`.
  /// - Parameters:
  ///   - type: stream or random.
  ///   - path: an absolute path; for any other the result is nil, and the cleanup handler is never called.
  ///   - oflag: the flags for `open`; the descriptor is closed on exec in any case.
  ///   - mode: the mode for `open`.
  ///   - queue: where the cleanup handler and the channel's barriers run.
  ///   - cleanupHandler: called once: with 0 when the channel has closed and all handlers of its operations
  ///     have returned, even if opening the file failed (the operations get that errno); or at once with an
  ///     errno if the path names a directory or a missing file, or, with O_CREAT, a file in a missing
  ///     directory.
  @available(swift 4)
  public convenience init?(
    type: DispatchIO.StreamType, path: UnsafePointer<Int8>, oflag: Int32, mode: mode_t,
    queue: DispatchQueue, cleanupHandler: @escaping (_ error: Int32) -> Void
  ) {
    self.init(type, path, oflag, mode, queue, cleanupHandler)
  }

  /// Makes another channel to the descriptor or path of a channel. It has marks, an interval and a type
  /// of its own.
  ///
  /// On a descriptor the cleanup handlers of both run after both have closed. A path is opened by each
  /// channel for itself. From a channel that is closed, or whose descriptor or path has failed, comes one whose
  /// cleanup handler is called at once, with `ECANCELED` or the errno. Matching C function:
  /// `dispatch_io_create_with_io`.
  /// - Parameters:
  ///   - type: stream or random.
  ///   - io: the channel to share with.
  ///   - queue: where the cleanup handler and the channel's barriers run.
  ///   - cleanupHandler: called once, with 0 or an errno.
  public convenience init(
    type: DispatchIO.StreamType, io: DispatchIO, queue: DispatchQueue,
    cleanupHandler: @escaping (_ error: Int32) -> Void
  ) {
    let (open, failure) = io.entry.openDescriptor
    let mayShare = io.entry.path == nil
    let position = type == .random && mayShare ? open.map(OpenFile.position) ?? 0 : 0
    let channel = Channel(type, base: max(0, position), queue, cleanupHandler)
    switch io.entry.lock.withLock({ io.channel.state.admission() }) {
    case .refused(let error):
      self.init(channel, failing: error)
    case .admitted where failure != 0:
      self.init(channel, failing: failure)
    case .admitted where position < 0:
      self.init(channel, failing: Int32(-position))
    case .admitted:
      if let path = io.entry.path {
        self.init(channel, opening: path)
      } else if io.entry.attach(channel) {
        self.init(channel, io.entry)
      } else {
        self.init(channel, failing: ECANCELED)
      }
    }
  }

  /// Sets the queue that the channel's barriers run on. Matching C function: `dispatch_set_target_queue`.
  /// - Parameter queue: the new target; nil means the default-QoS global queue.
  public override func setTarget(queue: DispatchQueue?) { channel.queue = queue ?? .global() }

  /// As the initializer that may fail; traps for a path that is not absolute.
  @available(swift, obsoleted: 4)
  public convenience init(
    type: DispatchIO.StreamType, path: UnsafePointer<Int8>, oflag: Int32, mode: mode_t,
    queue: DispatchQueue, cleanupHandler: @escaping (_ error: Int32) -> Void
  ) {
    self.init(type, path, oflag, mode, queue, cleanupHandler)!
  }

  private convenience init?(
    _ type: DispatchIO.StreamType, _ path: UnsafePointer<Int8>, _ oflag: Int32, _ mode: mode_t,
    _ queue: DispatchQueue, _ cleanupHandler: @escaping (_ error: Int32) -> Void
  ) {
    guard path[0] == CChar(UInt8(ascii: "/")) else { return nil }
    let file = UnopenedFile(path: String(cString: path), flags: oflag, mode: mode)
    let channel = Channel(type, base: 0, queue, cleanupHandler)
    let failure = file.lookUp()
    if failure == 0 { self.init(channel, opening: file) } else { self.init(channel, failing: failure) }
  }

  private convenience init(_ channel: Channel, opening path: UnopenedFile) {
    let entry = DescriptorEntry(opening: path)
    _ = entry.attach(channel)
    self.init(channel, entry)
  }

  private convenience init(_ channel: Channel, failing error: Int32) {
    let entry = DescriptorEntry(.failed(error))
    _ = entry.attach(channel)
    self.init(channel, entry)
  }

  // MARK: Operations

  /// Reads up to `length` bytes.
  ///
  /// The handler's calls never overlap, and come in order, as items of `queue`. A read that ends at the end
  /// of the file ends with no error and empty data; one that fails, with the errno and nil; what was
  /// read before is delivered by an earlier call. Matching C function: `dispatch_io_read`.
  /// - Parameters:
  ///   - offset: for random channels, the place, counted from where the channel began; else ignored.
  ///   - length: the most to read; `Int.max` or a negative number for everything until the end.
  ///   - queue: where the handler runs.
  ///   - ioHandler: called once or more, with whether this is the last call, what has been read since
  ///     the call before, and 0 or an errno.
  public func read(
    offset: off_t, length: Int, queue: DispatchQueue,
    ioHandler: @escaping (_ done: Bool, _ data: DispatchData?, _ error: Int32) -> Void
  ) {
    submit(.read(length, .pieces, channel.marks), offset, queue, ioHandler)
  }

  /// Writes all of `data`.
  ///
  /// As for reading, but the handler is told what is still unwritten: nil at the end of a write that
  /// succeeds. Writing to a pipe or socket whose other end is gone raises `SIGPIPE`, and fails with `EPIPE`
  /// if the program ignores that. Matching C function: `dispatch_io_write`.
  /// - Parameters:
  ///   - offset: for random channels, the place, counted from where the channel began; else ignored.
  ///   - data: what to write.
  ///   - queue: where the handler runs.
  ///   - ioHandler: called once or more, with whether this is the last call, what is unwritten, and 0 or
  ///     an errno.
  public func write(
    offset: off_t, data: DispatchData, queue: DispatchQueue,
    ioHandler: @escaping (_ done: Bool, _ data: DispatchData?, _ error: Int32) -> Void
  ) {
    submit(.write(data, .pieces, channel.marks), offset, queue, ioHandler)
  }

  private func submit(
    _ progress: OperationProgress, _ offset: off_t, _ queue: DispatchQueue,
    _ handler: @escaping (Bool, DispatchData?, Int32) -> Void
  ) {
    Runtime.requireThreads("an operation of a DispatchIO channel")
    entry.submit(IOOperation(channel, entry, progress, offset: Int(offset), .pieces(queue, handler)))
  }
}

// swift-format-ignore: TypeNamesShouldBeCapitalized
/// A file descriptor. Matching C type: `dispatch_fd_t`.
public typealias dispatch_fd_t = Int32

// SAFETY: both stored properties are constant, and guard what they hold.
extension DispatchIO: @unchecked Sendable {}
