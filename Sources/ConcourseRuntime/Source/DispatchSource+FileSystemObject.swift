extension DispatchSource {
  /// What a file-system object source can report. Matching C constants: `DISPATCH_VNODE_DELETE` and so on.
  public struct FileSystemEvent: OptionSet, RawRepresentable, Sendable {
    /// The bits, as in C.
    public let rawValue: UInt

    /// The events with these bits.
    public init(rawValue: UInt) { self.rawValue = rawValue }

    /// The last name of the file, or the directory, has been removed.
    public static let delete = FileSystemEvent(rawValue: 0x1)
    /// The content has changed; for a directory, the entries.
    public static let write = FileSystemEvent(rawValue: 0x2)
    /// The file has become longer.
    public static let extend = FileSystemEvent(rawValue: 0x4)
    /// Mode, owner, times or extended attributes have changed.
    public static let attrib = FileSystemEvent(rawValue: 0x8)
    /// The number of names has changed; for a directory, that of its subdirectories.
    public static let link = FileSystemEvent(rawValue: 0x10)
    /// The file has been renamed or moved.
    public static let rename = FileSystemEvent(rawValue: 0x20)
    /// The file system has gone.
    public static let revoke = FileSystemEvent(rawValue: 0x40)
    /// The file was unlocked. Linux tells nobody: a source cannot be made for it.
    public static let funlock = FileSystemEvent(rawValue: 0x100)
    /// All of them but `.funlock`.
    public static let all: FileSystemEvent = [.delete, .write, .extend, .attrib, .link, .rename, .revoke]

    /// What can be observed here: `.all`. Code for several systems intersects its mask with this.
    public static var observable: FileSystemEvent { .all }

    static let names: [(UInt, String)] = [
      (delete.rawValue, "delete"), (write.rawValue, "write"), (extend.rawValue, "extend"),
      (attrib.rawValue, "attrib"), (link.rawValue, "link"), (rename.rawValue, "rename"),
      (revoke.rawValue, "revoke"), (funlock.rawValue, "funlock"),
    ]
  }

  /// Creates a source that calls its handler when something happens to an open file or directory.
  ///
  /// The file is observed, not a name of it: what happens through other descriptors and other names is
  /// reported too. Writes through memory maps are not, and neither is what other machines do on a network
  /// file system. Where the kernel has no watches left, or there is no /proc, the file is looked at four
  /// times a second instead.
  ///
  /// Traps on a negative descriptor, on an empty mask, and on `.funlock`.
  /// - Parameters:
  ///   - fileDescriptor: of the file; it must stay open until the cancel handler has run. The kernel lets
  ///     nobody observe a file that he may not read: such a file is looked at, see above.
  ///   - eventMask: what to report.
  ///   - queue: where the handlers run; nil means the default global queue.
  /// Matching C function: `dispatch_source_create` with `DISPATCH_SOURCE_TYPE_VNODE`.
  public class func makeFileSystemObjectSource(
    fileDescriptor: Int32, eventMask: FileSystemEvent, queue: DispatchQueue? = nil
  ) -> any DispatchSourceFileSystemObject {
    makeFileSystemObject(fileDescriptor, eventMask, queue).orTrap()
  }

  /// As `makeFileSystemObjectSource`, for callers that must not die of a refusal.
  static func makeFileSystemObject(
    _ descriptor: Int32, _ mask: FileSystemEvent, _ queue: DispatchQueue?
  ) -> Result<DispatchSource, SourceRefusal> {
    FileSystemBackend.make(descriptor: descriptor, mask: mask).map { backend in
      DispatchSource(
        SourceCore(
          kind: .fileSystemObject, handle: UInt(descriptor), mask: mask.rawValue, merging: .or, target: queue,
          backend: backend))
    }
  }
}

/// A source that reports what happens to a file or directory.
public protocol DispatchSourceFileSystemObject: DispatchSourceProtocol {
  /// The descriptor. Matching C function: `dispatch_source_get_handle`.
  var handle: Int32 { get }

  /// The events asked for; empty after cancellation. Matching C function: `dispatch_source_get_mask`.
  var mask: DispatchSource.FileSystemEvent { get }

  /// What has happened since the last call of the event handler; defined only inside it. Matching C
  /// function: `dispatch_source_get_data`.
  var data: DispatchSource.FileSystemEvent { get }
}

extension DispatchSourceFileSystemObject {
  /// `handle`. Named apart from that of process sources, which has the same type: `DispatchSource` has both.
  @_implements(DispatchSourceFileSystemObject,handle)
  public var _fileDescriptor: Int32 { Int32(truncatingIfNeeded: source.handle) }

  /// See the requirement.
  public var mask: DispatchSource.FileSystemEvent { .init(rawValue: source.mask) }

  /// See the requirement.
  public var data: DispatchSource.FileSystemEvent { .init(rawValue: source.data) }
}

extension DispatchSource: DispatchSourceFileSystemObject {}
