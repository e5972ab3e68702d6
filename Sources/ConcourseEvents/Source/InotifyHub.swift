internal import CConcourse
internal import Glibc

/// A listener's interest in one file of the hub.
///
/// The watch retains its listener. A listener that should not live forever removes the watch and releases it when
/// done.
final class InotifyWatch {
  /// A notice of the kernel about a file.
  struct Notice {
    let mask: Int32
    /// Whether the notice concerns an entry of the directory rather than the file itself.
    let concernsEntry: Bool

    func contains(_ bits: Int32) -> Bool { mask & bits != 0 }

    var isRemovalOfDirectory: Bool {
      concernsEntry && contains(Int32(IN_DELETE)) && contains(Int32(IN_ISDIR))
    }
  }

  /// The kernel's watch descriptor; -1 once the kernel has dropped the watch. GUARDED BY the hub's lock.
  fileprivate(set) var number: Int32 = -1
  fileprivate let listener: any InotifyListener

  init(listener: any InotifyListener) { self.listener = listener }
}

// SAFETY: `number` is guarded as noted above; `listener` is constant.
extension InotifyWatch: @unchecked Sendable {}

/// Receives the notices of a watch.
protocol InotifyListener: AnyObject, Sendable {
  /// Called on a polling thread without locks held. May be called once more after `remove`.
  func fileNoticed(_ notice: InotifyWatch.Notice, by watch: InotifyWatch)
  /// The kernel dropped notices: anything may have happened.
  func noticesLost()
}

/// All files that this process observes, through one inotify descriptor: systems grant a user few of them (128).
///
/// The kernel has one watch for a file, however many watches the hub has for it. The hub counts its watches, and
/// requests the same notices for each. A notice names a watch by its number, which the kernel does not soon reuse;
/// the hub ignores a notice for a number that it has removed.
final class InotifyHub {
  static let shared = InotifyHub()

  private let lock = Lock(.inotifyHub)
  // GUARDED BY `lock`.
  private var descriptor: Int32 = -1
  private var watch: FileWatch?
  private var watches: [Int32: [InotifyWatch]] = [:]
  /// The calls of inotify_add_watch in flight. They are made without the lock: the path may lead to a server that does not
  /// answer. Each may return the number of a watch that the kernel already has, so the hub notes in the meantime
  private var adding = 0
  /// - numbers whose last watch was removed: the kernel's watch goes once no call is in flight,
  private var abandoned: Set<Int32> = []
  /// - numbers whose file has moved or gone.
  private var missed: Set<Int32> = []

  /// Fits one notice with the longest name, or some hundreds without names.
  private static let bufferSize = 8192
  /// The hub reads at most this many buffers before other descriptors get their turn.
  private static let batch = 16

  /// Closes the descriptor and drops all watches. For tests; the shared hub is never closed.
  func close() {
    let (watch, descriptor, watches) = lock.withLock { () -> (FileWatch?, Int32, [Int32: [InotifyWatch]]) in
      defer { (self.watch, self.descriptor, self.watches) = (nil, -1, [:]) }
      for watch in self.watches.values.joined() { watch.number = -1 }
      (adding, abandoned, missed) = (0, [], [])
      return (self.watch, self.descriptor, self.watches)
    }
    watch?.remove()
    if descriptor >= 0 { _ = System.close(descriptor) }
    // Release the listeners here, outside the lock.
    withExtendedLifetime(watches) {}
  }

  /// The notices to request for a file. On a directory most notices concern its entries; notices about changes inside
  /// an entry would only be noise.
  static func interest(isDirectory: Bool) -> Int32 {
    let own = IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF
    return own | (isDirectory ? IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ONLYDIR : IN_MODIFY)
  }

  /// The notices to request for the parent of an observed directory: only that the directory was removed.
  static let interestInParent = Int32(IN_DELETE | IN_ONLYDIR)

  /// Starts to report changes of the file at `path` to the watch's listener.
  /// - Returns: 0, or the errno.
  func add(_ watch: InotifyWatch, path: String, interest: Int32) -> Int32 {
    let (descriptor, newWatch) = lock.withLock { beginAdding() }
    guard descriptor >= 0 else { return -descriptor }
    _ = newWatch?.install()
    // IN_MASK_ADD: the kernel's one watch for the file may already serve a listener with another mask.
    let number = BlockedSection.run { Int32(System.addWatch(descriptor, path, interest | IN_MASK_ADD)) }
    return lock.withLock { endAdding(watch, number, descriptor) }
  }

  /// Call under the lock.
  /// - Returns: the inotify descriptor, or the errno negated, and the descriptor's watch if that is new.
  private func beginAdding() -> (descriptor: Int32, new: FileWatch?) {
    var newWatch: FileWatch?
    if descriptor < 0 {
      descriptor = Int32(System.createInotify())
      guard descriptor >= 0 else { return (descriptor, nil) }
      newWatch = FileWatch(descriptor: descriptor, interest: .read, owner: self)
      watch = newWatch
    }
    adding += 1
    return (descriptor, newWatch)
  }

  /// Notes the number that the kernel has returned for a watch. Call under the lock.
  /// - Parameter used: the inotify descriptor of the call.
  /// - Returns: 0, or the errno. ESTALE: the file has moved or gone meanwhile.
  private func endAdding(_ watch: InotifyWatch, _ number: Int32, _ used: Int32) -> Int32 {
    guard used == descriptor else { return EBADF }
    var failure = number < 0 ? -number : 0
    if failure == 0 && missed.contains(number) {
      failure = ESTALE
      if watches[number] == nil { abandoned.insert(number) }
    } else if failure == 0 {
      watch.number = number
      watches[number, default: []].append(watch)
      abandoned.remove(number)
    }
    adding -= 1
    if adding == 0 {
      // EINVAL: the file was removed, and its watch with it.
      for number in abandoned { _ = System.removeWatch(descriptor, number) }
      (abandoned, missed) = ([], [])
    }
    return failure
  }

  /// Removes the watch. The kernel's own watch goes with the last one for the file.
  func remove(_ watch: InotifyWatch) {
    lock.withLock {
      let number = watch.number
      guard number >= 0 else { return }
      watch.number = -1
      watches[number]?.removeAll { $0 === watch }
      guard watches[number]?.isEmpty == true else { return }
      watches[number] = nil
      guard adding == 0 else {
        abandoned.insert(number)
        return
      }
      // A forked child shares the kernel's watches with its parent.
      if Process.isForkedChild { return }
      // EINVAL: as above.
      _ = System.removeWatch(descriptor, number)
    }
  }

  /// The number of watches that the kernel holds for the hub.
  var watchCount: Int { lock.withLock { watches.count } }
}

// MARK: - Notices

extension InotifyHub: FileWatchOwner {
  func fileIsReady(_ watch: FileWatch) {
    // SAFETY: the buffer does not leave the closure; notices copy what they keep.
    withUnsafeTemporaryAllocation(byteCount: Self.bufferSize, alignment: 8) { buffer in
      for _ in 0..<Self.batch {
        // After `close`, the descriptor's number may belong to a client.
        let count = lock.withLock {
          watch !== self.watch ? 0 : System.read(watch.descriptor, into: buffer)
        }
        guard count > 0 else { break }
        // SAFETY: the kernel wrote `count` bytes of whole notices.
        deliver(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
      }
    }
    watch.rearm()
  }

  /// Delivers the notices that the kernel wrote. Internal for tests.
  func deliver(_ notices: UnsafeRawBufferPointer) {
    let header = MemoryLayout<inotify_event>.size
    var offset = 0
    var entryNotices: Set<Int64> = []
    while offset + header <= notices.count {
      // SAFETY: within the buffer, by the loop's condition. The load does not need alignment.
      let event = notices.loadUnaligned(fromByteOffset: offset, as: inotify_event.self)
      offset += header + Int(event.len)
      let mask = Int32(bitPattern: event.mask)
      if mask & IN_Q_OVERFLOW != 0 {
        let all = lock.withLock { watches.values.flatMap { $0 } }
        var told: Set<ObjectIdentifier> = []
        for watch in all where told.insert(ObjectIdentifier(watch.listener)).inserted {
          watch.listener.noticesLost()
        }
        continue
      }
      let notice = InotifyWatch.Notice(mask: mask, concernsEntry: event.len > 0)
      // The listener reads the status after all of these notices have come. It needs only one for many entries.
      let kind = Int64(event.wd) << 32 | Int64(event.mask)
      if notice.concernsEntry && !entryNotices.insert(kind).inserted { continue }
      for watch in recipients(of: event.wd, notice) {
        watch.listener.fileNoticed(notice, by: watch)
      }
    }
  }

  /// The watches that a notice concerns.
  private func recipients(of number: Int32, _ notice: InotifyWatch.Notice) -> [InotifyWatch] {
    lock.withLock {
      // The kernel has dropped the watch.
      let isLast = notice.contains(Int32(IN_IGNORED))
      // A listener that is on its way compares the file's status, which shows all but these.
      if adding > 0 && (isLast || notice.contains(IN_MOVE_SELF)) { missed.insert(number) }
      if isLast { abandoned.remove(number) }
      guard let found = watches[number] else { return [] }
      if isLast {
        for watch in found { watch.number = -1 }
        watches[number] = nil
      }
      return found
    }
  }
}

// SAFETY: everything is GUARDED BY `lock`.
extension InotifyHub: @unchecked Sendable {}
