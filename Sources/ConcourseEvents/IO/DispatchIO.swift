public import Glibc

/// A channel to a file, pipe, socket or terminal, which reads and writes bytes asynchronously.
///
/// A **stream** channel reads and writes at the file's own position, one operation after another in each
/// direction. A **random** channel reads and writes at given offsets, several operations side by side.
/// A descriptor belongs to its channels: they may make it non-blocking, and other code should not read, write or
/// close it. When the last channel on it has closed and its operations have ended, the descriptor's flags are restored
/// and the cleanup handlers run. Releasing a channel closes it. All calls may be made from any thread. Lengths,
/// offsets and marks are in bytes.
///
/// An operation pauses while 32 MiB, or some 100,000 calls, wait for its handler.
///
/// Matching C type: `dispatch_io_t`.
public class DispatchIO: DispatchObject {
  final let channel: Channel
  final let entry: DescriptorEntry

  /// How a channel moves through its file.
  public enum StreamType: UInt, Sendable {
    /// From the file's position on, one operation after another in each direction.
    case stream = 0
    /// At the offsets of the operations.
    case random = 1
  }

  /// How a channel closes.
  public struct CloseFlags: OptionSet, RawRepresentable, Sendable {
    /// The bits.
    public let rawValue: UInt
    /// A set from its bits.
    public init(rawValue: UInt) { self.rawValue = rawValue }
    /// Unfinished operations end early. Matching C constant: `DISPATCH_IO_STOP`.
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
    /// Handlers are called at every interval, even with less than the low-water mark or with nothing.
    /// Matching C constant: `DISPATCH_IO_STRICT_INTERVAL`.
    public static let strictInterval = IntervalFlags(rawValue: 1)
  }

  init(_ channel: Channel, _ entry: DescriptorEntry) {
    self.channel = channel
    self.entry = entry
    super.init(kind: .channel)
  }

  deinit {
    // Later handler calls may use the context.
    uncountedExtrasIfAny?._withUnsafeGuaranteedRef { if $0.hasFinalizer { channel.keep($0) } }
    entry.close(channel, stopping: false)
  }

  /// Makes a channel to a descriptor, which belongs to its channels until the cleanup handler runs.
  ///
  /// Matching C function: `dispatch_io_create`.
  /// - Parameters:
  ///   - type: stream or random; random offsets count from the descriptor's position now.
  ///   - fileDescriptor: the descriptor.
  ///   - queue: where the cleanup handler and the channel's barriers run.
  ///   - cleanupHandler: called once. With 0 when the descriptor is given back, after every handler of the
  ///     operations on it; or at once with an errno if the channel cannot be made: `EBADF` for a bad descriptor,
  ///     `ESPIPE` for a random channel to a file without a position.
  public convenience init(
    type: DispatchIO.StreamType, fileDescriptor: dispatch_fd_t, queue: DispatchQueue,
    cleanupHandler: @escaping (_ error: Int32) -> Void
  ) {
    self.init(type, fileDescriptor, queue, CleanupHandler(cleanupHandler))
  }

  /// As above, for C.
  package convenience init(
    _ type: DispatchIO.StreamType, _ descriptor: Int32, _ queue: DispatchQueue, _ cleanup: CleanupHandler?
  ) {
    let (channel, error) = Channel.make(type, on: descriptor, queue, cleanup)
    if error != 0 {
      self.init(channel, failing: error)
    } else {
      self.init(channel, DescriptorTable.attach(channel, to: descriptor))
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
  ///   - cleanupHandler: called once. With 0 when the channel has closed and all handlers of its operations
  ///     have returned, even if opening the file failed (the operations get that errno); or at once with an
  ///     errno if the path names a directory or a missing file, or, with O_CREAT, a file in a missing
  ///     directory.
  @available(swift 4)
  public convenience init?(
    type: DispatchIO.StreamType, path: UnsafePointer<Int8>, oflag: Int32, mode: mode_t,
    queue: DispatchQueue, cleanupHandler: @escaping (_ error: Int32) -> Void
  ) {
    self.init(type, path, oflag, mode, queue, CleanupHandler(cleanupHandler))
  }

  /// Makes another channel to the descriptor or path of a channel. It has its own marks, interval and type.
  ///
  /// On a descriptor the cleanup handlers of both run after both have closed. Each channel opens a path for itself.
  /// If the given channel is closed, or its descriptor or path has failed, the new channel's cleanup handler is called
  /// at once, with `ECANCELED` or the errno. Matching C function: `dispatch_io_create_with_io`.
  /// - Parameters:
  ///   - type: stream or random.
  ///   - io: the channel to share with.
  ///   - queue: where the cleanup handler and the channel's barriers run.
  ///   - cleanupHandler: called once, with 0 or an errno.
  public convenience init(
    type: DispatchIO.StreamType, io: DispatchIO, queue: DispatchQueue,
    cleanupHandler: @escaping (_ error: Int32) -> Void
  ) {
    self.init(type, io, queue, CleanupHandler(cleanupHandler))
  }

  /// As above, for C.
  package convenience init(
    _ type: DispatchIO.StreamType, _ io: DispatchIO, _ queue: DispatchQueue, _ cleanup: CleanupHandler?
  ) {
    switch io.entry.origin(besides: io.channel) {
    case .refused(let error):
      self.init(Channel(type, queue, cleanup), failing: error)
    case .path(let file):
      self.init(Channel(type, queue, cleanup), opening: file)
    case .descriptor(let descriptor):
      let (channel, error) = Channel.make(type, on: descriptor, queue, cleanup)
      if error != 0 {
        self.init(channel, failing: error)
      } else if io.entry.attach(channel) {
        self.init(channel, io.entry)
      } else {
        self.init(channel, failing: ECANCELED)
      }
    }
  }

  /// Sets the queue that the channel's barriers and its finalizer run on.
  /// Matching C function: `dispatch_set_target_queue`.
  /// - Parameter queue: the new target; nil means the default-QoS global queue.
  public override func setTarget(queue: DispatchQueue?) {
    channel.queue = queue ?? .global()
    objectExtras.setLastQueue(queue)
  }

  /// As the failable initializer; traps for a path that is not absolute.
  @available(swift, obsoleted: 4)
  public convenience init(
    type: DispatchIO.StreamType, path: UnsafePointer<Int8>, oflag: Int32, mode: mode_t,
    queue: DispatchQueue, cleanupHandler: @escaping (_ error: Int32) -> Void
  ) {
    self.init(type, path, oflag, mode, queue, CleanupHandler(cleanupHandler))!
  }

  /// As above, for C.
  package convenience init?(
    _ type: DispatchIO.StreamType, _ path: UnsafePointer<Int8>, _ oflag: Int32, _ mode: mode_t,
    _ queue: DispatchQueue, _ cleanup: CleanupHandler?
  ) {
    guard path[0] == CChar(UInt8(ascii: "/")) else { return nil }
    let bytes = UnsafeBufferPointer(start: path, count: Int(strlen(path)) + 1)
    let file = UnopenedFile(path: Array(bytes), flags: oflag, mode: mode)
    let channel = Channel(type, queue, cleanup)
    let failure = file.lookUp()
    if failure == 0 { self.init(channel, opening: file) } else { self.init(channel, failing: failure) }
  }

  private convenience init(_ channel: Channel, opening path: UnopenedFile) {
    let entry = DescriptorEntry(.unopened(path))
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
  /// The handler's calls come in order, as items of `queue`, and never overlap. At the end of the file the last call
  /// gets empty data and no error, after a failure nil and the errno; an earlier call delivers what was read before.
  /// Matching C function: `dispatch_io_read`.
  /// - Parameters:
  ///   - offset: for random channels, the place, counted from where the channel began; else ignored.
  ///   - length: the most to read; `Int.max` or a negative number for everything until the end.
  ///   - queue: where the handler runs.
  ///   - ioHandler: called once or more, with whether this is the last call, the data read since the last call, and 0
  ///     or an errno.
  public func read(
    offset: off_t, length: Int, queue: DispatchQueue,
    ioHandler: @escaping (_ done: Bool, _ data: DispatchData?, _ error: Int32) -> Void
  ) {
    read(offset, length, queue, OperationHandler(ioHandler))
  }

  /// As above, for C.
  package final func read(
    _ offset: Int, _ length: Int, _ queue: DispatchQueue, _ handler: OperationHandler
  ) {
    submit(.read(length, .pieces, channel.marks), offset, queue, handler)
  }

  /// Writes all of `data`.
  ///
  /// As `read`, but the handler gets the data that is still unwritten: nil at the end of a write that succeeds.
  /// Writing to a pipe or socket whose other end is closed raises `SIGPIPE`, and fails with `EPIPE` if the program
  /// ignores that. Matching C function: `dispatch_io_write`.
  /// - Parameters:
  ///   - offset: for random channels, the place, counted from where the channel began; else ignored.
  ///   - data: what to write.
  ///   - queue: where the handler runs.
  ///   - ioHandler: called once or more, with whether this is the last call, the unwritten data, and 0 or an errno.
  public func write(
    offset: off_t, data: DispatchData, queue: DispatchQueue,
    ioHandler: @escaping (_ done: Bool, _ data: DispatchData?, _ error: Int32) -> Void
  ) {
    write(offset, data, queue, OperationHandler(ioHandler))
  }

  /// As above, for C.
  package final func write(
    _ offset: Int, _ data: DispatchData, _ queue: DispatchQueue, _ handler: OperationHandler
  ) {
    submit(.write(data, .pieces, channel.marks), offset, queue, handler)
  }

  private func submit(
    _ progress: OperationProgress, _ offset: Int, _ queue: DispatchQueue, _ handler: OperationHandler
  ) {
    Runtime.requireThreads("an operation of a DispatchIO channel")
    entry.submit(IOOperation(channel, entry, progress, offset: offset, queue, handler, for: self))
  }
}

extension DispatchIO {
  /// Runs a closure while no operation on the descriptor does: after the input and output of all operations submitted
  /// before it, to any channel of the descriptor, and before any later one starts.
  ///
  /// Handlers may run at the same time. The closure is an item of the channel's target, by default the queue of its
  /// cleanup handler, and may use the channel's descriptor. Matching C function: `dispatch_io_barrier`.
  /// - Parameter execute: the closure.
  public func barrier(execute: @escaping () -> Void) {
    barrier(execute, code: ItemRecording.code(of: execute))
  }

  /// As above, for C; `code` is the address of the client's code.
  package final func barrier(_ body: @escaping () -> Void, code: UInt) {
    Runtime.requireThreads("a barrier of a DispatchIO channel")
    entry.submit(DescriptorState.Barrier(queue: channel.queue, body: body, code: code, object: self))
  }

  /// The channel's descriptor; -1 if the channel is closed, has no file, or has not opened its path yet. In a barrier
  /// the path is opened. A barrier that was submitted before the channel was closed still gets the descriptor, unless
  /// the channel was closed with `.stop`. Matching C function: `dispatch_io_get_descriptor`.
  public var fileDescriptor: Int32 { entry.descriptor(for: channel) }

  /// Sets the most bytes that one call of a handler gets; unlimited at first. Lowers the low-water mark if necessary.
  /// For operations submitted from now on. Matching C function: `dispatch_io_set_high_water`.
  /// - Parameter highWater: at least 1; a negative number for no limit.
  public func setLimit(highWater: Int) { channel.changeMarks { $0.setHigh(highWater) } }

  /// Sets the fewest bytes that a call of a handler gets, except in the last call and at a strict interval; 1 MiB at
  /// first. Raises the high-water mark if necessary. For operations submitted from now on. Matching C function:
  /// `dispatch_io_set_low_water`.
  /// - Parameter lowWater: `Int.max` or a negative number for a single call at the end.
  public func setLimit(lowWater: Int) { channel.changeMarks { $0.setLow(lowWater) } }

  /// Calls handlers at an interval: with `.strictInterval` with any amount of data, else only if the low-water mark
  /// has been reached. For operations submitted from now on. A handler that lags behind gets no extra calls. Matching C
  /// function: `dispatch_io_set_interval`.
  /// - Parameters:
  ///   - interval: the time between calls; `.never`, zero and negative intervals end the calls.
  ///   - flags: whether the interval is strict.
  public func setInterval(interval: DispatchTimeInterval, flags: DispatchIO.IntervalFlags = []) {
    let nanoseconds = interval == .never ? 0 : interval.saturatedNanoseconds
    setInterval(nanoseconds: UInt64(max(0, nanoseconds)), isStrict: flags.contains(.strictInterval))
  }

  /// As `setInterval(interval:flags:)`; 0, and an interval that no clock reaches, end the calls. Matching C function:
  /// `dispatch_io_set_interval`.
  package final func setInterval(nanoseconds: UInt64, isStrict: Bool) {
    let isReachable = nanoseconds > 0 && nanoseconds <= UInt64(Int64.max)
    channel.pacing = isReachable ? Channel.Pacing(interval: nanoseconds, isStrict: isStrict) : nil
  }

  /// Closes the channel: later operations fail with `ECANCELED`, earlier ones go on. Closing again has no effect.
  /// Matching C function: `dispatch_io_close`.
  /// - Parameter flags: with `.stop`, unfinished operations deliver what they have and end as soon as possible with
  ///   `ECANCELED`.
  public func close(flags: DispatchIO.CloseFlags = []) {
    entry.close(channel, stopping: flags.contains(.stop))
  }

  // MARK: Single operations

  /// Reads once: waits for the first byte, takes what is available, and calls the handler.
  ///
  /// The descriptor belongs to the operation until then. Matching C function: `dispatch_read`.
  /// - Parameters:
  ///   - fromFileDescriptor: the descriptor, read at its position.
  ///   - maxLength: the most to read; `Int.max` or a negative number for everything available.
  ///   - queue: where the handler runs.
  ///   - handler: called once, with the data and 0 or an errno. Empty data without an error means the end of the file.
  public class func read(
    fromFileDescriptor: Int32, maxLength: Int, runningHandlerOn queue: DispatchQueue,
    handler: @escaping (_ data: DispatchData, _ error: Int32) -> Void
  ) {
    read(fromFileDescriptor, maxLength, queue, OperationHandler(reading: handler))
  }

  /// As above, for C; the handler may get no data.
  package static func read(
    _ descriptor: Int32, _ maxLength: Int, _ queue: DispatchQueue, _ handler: OperationHandler
  ) {
    submitOnce(.read(maxLength, .once), to: descriptor, queue, handler)
  }

  /// Writes once: waits until everything is written, and calls the handler.
  ///
  /// The descriptor belongs to the operation until then. Matching C function: `dispatch_write`.
  /// - Parameters:
  ///   - toFileDescriptor: the descriptor, written at its position.
  ///   - data: what to write.
  ///   - queue: where the handler runs.
  ///   - handler: called once, with nil and 0, or with the unwritten data and an errno.
  public class func write(
    toFileDescriptor: Int32, data: DispatchData, runningHandlerOn queue: DispatchQueue,
    handler: @escaping (_ data: DispatchData?, _ error: Int32) -> Void
  ) {
    write(toFileDescriptor, data, queue, OperationHandler(writing: handler))
  }

  /// As above, for C.
  package static func write(
    _ descriptor: Int32, _ data: DispatchData, _ queue: DispatchQueue, _ handler: OperationHandler
  ) {
    submitOnce(.write(data, .once), to: descriptor, queue, handler)
  }

  private class func submitOnce(
    _ progress: OperationProgress, to descriptor: Int32, _ queue: DispatchQueue,
    _ handler: OperationHandler
  ) {
    Runtime.requireThreads("an operation on a descriptor")
    let channel = Channel(forOneOperationOn: queue)
    let entry = DescriptorTable.attach(channel, to: descriptor)
    entry.submit(IOOperation(channel, entry, progress, offset: 0, queue, handler))
  }

  // MARK: Files

  /// How file contents that the kernel does not have in memory are read and written.
  public enum FileBackend: Sendable {
    /// Through the kernel's submission and completion rings, `io_uring`.
    case ring
    /// By pool threads that block in the call.
    case threads
  }

  /// How channels of this process read and write files.
  ///
  /// Rings where the kernel, the sandbox and the descriptor limit allow them, else threads. The environment
  /// variable `CONCOURSE_IO`, read once, overrides that. `threads` uses no ring. `uring` sends every transfer through
  /// the ring if there is one. Without the variable, or with `auto`, a read first takes what the kernel has in
  /// memory, and a pool thread makes each write; both are faster that way. Asking may create the ring. May be called
  /// from any thread.
  public static var fileBackend: FileBackend {
    FilePolicy.current != .threads && CompletionRing.current != nil ? .ring : .threads
  }
}

// swift-format-ignore: TypeNamesShouldBeCapitalized
/// A file descriptor. Matching C type: `dispatch_fd_t`.
public typealias dispatch_fd_t = Int32

// SAFETY: both stored properties are constant, and guard what they hold.
extension DispatchIO: @unchecked Sendable {}
