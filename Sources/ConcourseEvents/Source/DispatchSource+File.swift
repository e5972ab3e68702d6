extension DispatchSource {
  /// Creates a source that calls its handler while there is something to read.
  ///
  /// Level-triggered: the handler is called again as long as unread bytes remain. `data` estimates their number. A
  /// `data` of 0 means end of file. Files and hung-up pipes report it once. A socket whose peer has shut down writing
  /// reports it repeatedly, until the source is cancelled. Listening sockets, and other descriptors that cannot count
  /// bytes, report 1. Files and devices that the kernel cannot poll are always ready.
  ///
  /// Traps on a negative descriptor.
  /// - Parameters:
  ///   - fileDescriptor: must stay open until the cancel handler has run. A source for a descriptor that is already
  ///     closed never fires.
  ///   - queue: the queue on which the handlers run; nil means the default global queue.
  /// Matching C function: `dispatch_source_create` with `DISPATCH_SOURCE_TYPE_READ`.
  public class func makeReadSource(
    fileDescriptor: Int32, queue: DispatchQueue? = nil
  ) -> any DispatchSourceRead {
    makeFileSource(.read, fileDescriptor, queue) { ReadBackend($0) }
  }

  /// Creates a source that calls its handler while there is space to write.
  ///
  /// Level-triggered: the handler is called again as long as there is space, so suspend the source when there is
  /// nothing to write. `data` is 1. Files and devices that the kernel cannot poll are always ready. Traps on a
  /// negative descriptor.
  /// - Parameters:
  ///   - fileDescriptor: must stay open until the cancel handler has run.
  ///   - queue: the queue on which the handlers run; nil means the default global queue.
  /// Matching C function: `dispatch_source_create` with `DISPATCH_SOURCE_TYPE_WRITE`.
  public class func makeWriteSource(
    fileDescriptor: Int32, queue: DispatchQueue? = nil
  ) -> any DispatchSourceWrite {
    makeFileSource(.write, fileDescriptor, queue) { WriteBackend($0) }
  }

  private static func makeFileSource(
    _ kind: SourceKind, _ descriptor: Int32, _ queue: DispatchQueue?, _ backend: (Int32) -> FileBackend
  ) -> DispatchSource {
    guard descriptor >= 0 else {
      Trap.clientBug("a \(kind.rawValue) source was made for descriptor \(descriptor), which is negative")
    }
    return DispatchSource(
      SourceCore(
        kind: kind, handle: UInt(descriptor), mask: 0, merging: .replace, target: queue,
        backend: backend(descriptor)))
  }
}

/// A source that reports bytes to read.
public protocol DispatchSourceRead: DispatchSourceProtocol {}

/// A source that reports space to write.
public protocol DispatchSourceWrite: DispatchSourceProtocol {}

extension DispatchSource: DispatchSourceRead, DispatchSourceWrite {}
