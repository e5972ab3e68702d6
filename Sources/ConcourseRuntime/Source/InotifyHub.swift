internal import CConcourse
internal import Glibc

/// One party's interest in one file of the hub's.
///
/// It keeps its listener alive: one that is not to live for ever removes the watch and drops it when it has
/// ended.
final class InotifyWatch {
  /// What the kernel said of a file.
  struct Notice {
    let mask: Int32
    /// Whether it concerns an entry of the directory, not the file itself.
    let concernsEntry: Bool

    func contains(_ bits: Int32) -> Bool { mask & bits != 0 }
  }

  /// Where the kernel has it; -1 when it has let go. GUARDED BY the hub's lock.
  fileprivate(set) var number: Int32 = -1
  fileprivate let listener: any InotifyListener

  init(listener: any InotifyListener) { self.listener = listener }
}

// SAFETY: the guard above; the listener is constant.
extension InotifyWatch: @unchecked Sendable {}

/// Who is told what happens to a file.
protocol InotifyListener: AnyObject, Sendable {
  /// Called on a thread that polls, no lock is held. May come once more after `remove`.
  func fileNoticed(_ notice: InotifyWatch.Notice, by watch: InotifyWatch)
  /// Notices have been lost: anything may have happened.
  func noticesLost()
}

/// All files that this process observes, through one descriptor: systems grant a user few (128).
///
/// The kernel has one watch for a file, however many ask for it: the hub counts them, and asks for the same
/// notices whoever asks. Notices name a watch by its number, which the kernel does not use again soon; one
/// of a watch that has been removed finds nobody.
final class InotifyHub {
  static let shared = InotifyHub()

  private let lock = Lock()
  // GUARDED BY `lock`.
  private var descriptor: Int32 = -1
  private var watch: FileWatch?
  private var watches: [Int32: [InotifyWatch]] = [:]

  /// Large enough for one notice with the longest name, and for some hundred without.
  private static let bufferSize = 8192
  /// At most so many buffers are read before other descriptors get their turn.
  private static let batch = 16

  /// Lets go of the descriptor, and of all watches. For tests: the shared hub stays.
  func close() {
    let (watch, descriptor, watches) = lock.withLock { () -> (FileWatch?, Int32, [Int32: [InotifyWatch]]) in
      defer { (self.watch, self.descriptor, self.watches) = (nil, -1, [:]) }
      for watch in self.watches.values.joined() { watch.number = -1 }
      return (self.watch, self.descriptor, self.watches)
    }
    watch?.remove()
    if descriptor >= 0 { _ = System.call(.close) { System.result(Glibc.close(descriptor)) } }
    // Listeners are released here, outside the lock.
    withExtendedLifetime(watches) {}
  }

  /// What is asked for. On a directory most notices concern its entries; what happens inside of them would
  /// only be noise.
  static func interest(isDirectory: Bool) -> Int32 {
    let own = IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF
    return own | (isDirectory ? IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ONLYDIR : IN_MODIFY)
  }

  /// What is asked of the directory in which an observed directory stands: that the latter has gone.
  static let interestInParent = Int32(IN_DELETE | IN_ONLYDIR)

  /// Begins to tell the watch's listener of the file at `path`.
  /// - Returns: 0, or the errno.
  func add(_ watch: InotifyWatch, path: String, interest: Int32) -> Int32 {
    lock.lock()
    let isFirst = descriptor < 0
    if isFirst {
      descriptor = Int32(
        System.call(.inotifyCreate) {
          System.result(concourse_above_standard(inotify_init1(Int32(IN_CLOEXEC) | Int32(IN_NONBLOCK))))
        })
    }
    guard descriptor >= 0 else {
      defer { lock.unlock() }
      return -descriptor
    }
    let number = Int32(
      System.call(.inotifyAdd) {
        // The kernel has one watch for each file, which others may have asked for something else.
        System.result(inotify_add_watch(descriptor, path, UInt32(interest | IN_MASK_ADD)))
      })
    if number >= 0 {
      watch.number = number
      watches[number, default: []].append(watch)
    }
    var fresh: FileWatch?
    if isFirst {
      fresh = FileWatch(descriptor: descriptor, interest: .read, owner: self)
      self.watch = fresh
    }
    lock.unlock()
    _ = fresh?.install()
    return number < 0 ? -number : 0
  }

  /// Ends it; the kernel lets go with the last one.
  func remove(_ watch: InotifyWatch) {
    lock.withLock {
      let number = watch.number
      guard number >= 0 else { return }
      watch.number = -1
      watches[number]?.removeAll { $0 === watch }
      guard watches[number]?.isEmpty == true else { return }
      watches[number] = nil
      // EINVAL: the file has gone, and the watch with it.
      _ = System.call(.inotifyRemove) { System.result(inotify_rm_watch(descriptor, number)) }
    }
  }

  /// How many watches the kernel has for us.
  var watchCount: Int { lock.withLock { watches.count } }
}

// MARK: - Notices

extension InotifyHub: FileWatchOwner {
  func fileIsReady(_ watch: FileWatch) {
    // SAFETY: the buffer stays inside of the closure; what notices keep is copied.
    withUnsafeTemporaryAllocation(byteCount: Self.bufferSize, alignment: 8) { buffer in
      for _ in 0..<Self.batch {
        // Once `close` has been called, the descriptor's number may be that of a client's.
        let count = lock.withLock {
          watch !== self.watch
            ? 0
            : System.call(.read) {
              System.result(Glibc.read(watch.descriptor, buffer.baseAddress, buffer.count))
            }
        }
        guard count > 0 else { break }
        // SAFETY: the kernel wrote `count` bytes of whole notices.
        deliver(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
      }
    }
    watch.rearm()
  }

  /// Passes on what the kernel wrote. Internal for tests.
  func deliver(_ notices: UnsafeRawBufferPointer) {
    let header = MemoryLayout<inotify_event>.size
    var offset = 0
    while offset + header <= notices.count {
      // SAFETY: within the buffer, by the condition above. The kernel aligns notices, but need not.
      let event = notices.loadUnaligned(fromByteOffset: offset, as: inotify_event.self)
      offset += header + Int(event.len)
      let mask = Int32(bitPattern: event.mask)
      if mask & IN_Q_OVERFLOW != 0 {
        let all = lock.withLock { watches.values.flatMap { $0 } }
        for watch in all { watch.listener.noticesLost() }
        continue
      }
      let notice = InotifyWatch.Notice(mask: mask, concernsEntry: event.len > 0)
      for watch in takers(of: event.wd, isLast: notice.contains(Int32(IN_IGNORED))) {
        watch.listener.fileNoticed(notice, by: watch)
      }
    }
  }

  /// Whom a notice concerns; `isLast` when the kernel has dropped the watch.
  private func takers(of number: Int32, isLast: Bool) -> [InotifyWatch] {
    lock.withLock {
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
