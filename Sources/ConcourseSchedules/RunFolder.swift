import Glibc

/// The folder for temporary files of a run. Runs get the same random numbers, so files with unique names would be the same
/// ones if two runs at the same time shared a folder.
///
/// All names have the same length, so that a program's memory has the same addresses with each. A run takes the first name
/// that no other run has, so runs that are alone have the same name, and text made of it is the same. A lock on the folder
/// says that a run has it. What an ended process has left behind has no lock, and is emptied and used again.
///
/// The program may have put anything in the folder's place, or into it: links, folders without permissions, names that are
/// no text. So the folder is emptied through descriptors, and no link is followed.
package final class RunFolder {
  package static let variable = "TMPDIR"
  private static let most = 10_000
  /// Of the folder's own mode, the sticky bit, which changes nothing for its owner, marks it as one of a run.
  private static let mode = S_ISVTX | S_IRWXU
  private static let flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
  /// O_PATH, which Swift does not import.
  private static let onlyName: Int32 = 0x20_0000
  /// Other processes may take or remove a folder between two calls.
  private static let attempts = 10

  package let path: String
  /// Has the lock. -1 if the program has removed the folder, and no other could be made.
  private var descriptor: Int32

  /// nil if none can be made. Then the program has the usual folder.
  /// - Parameter parent: The program's own TMPDIR.
  package init?(in parent: String?) {
    var folder = parent ?? "/tmp"
    while folder.count > 1 && folder.hasSuffix("/") { folder.removeLast() }
    if !folder.hasPrefix("/") { folder = "/tmp" }
    for number in 0..<Self.most {
      let path = folder + "/concourse-" + String(Self.most + number).dropFirst()
      switch Self.take(path) {
      case .taken(let descriptor):
        (self.path, self.descriptor) = (path, descriptor)
        return
      case .used: continue
      case .impossible: return nil
      }
    }
    return nil
  }

  deinit {
    if isInPlace || adopt() { Self.clear(descriptor) }
    // A link, or a file, if the program has put one there.
    if rmdir(path) != 0 && errno == ENOTDIR { unlink(path) }
    // Last: until then, no other run takes the folder.
    if descriptor >= 0 { close(descriptor) }
  }

  /// Removes what is in it, and makes it again if the program has removed it.
  package func clear() {
    if isInPlace || adopt() {
      Self.clear(descriptor)
      return
    }
    unlink(path)
    if case .taken(let made) = Self.take(path) { replaceDescriptor(made) }
  }

  // MARK: Which folder it is

  private enum Attempt {
    case taken(Int32)
    case used, impossible
  }

  /// Makes the folder, or takes one that an ended process has left behind, and empties it.
  private static func take(_ path: String) -> Attempt {
    for _ in 0..<attempts {
      let isNew = mkdir(path, mode) == 0
      guard isNew || errno == EEXIST else { return .impossible }
      let descriptor = open(path, flags)
      guard descriptor >= 0 else {
        if errno == ENOENT { continue }
        if isNew { rmdir(path) }
        return isNew ? .impossible : .used
      }
      // A file system may know no locks, and not this mode.
      if isNew || isOwn(descriptor),
        flock(descriptor, LOCK_EX | LOCK_NB) == 0 || (isNew && errno != EWOULDBLOCK)
      {
        // The one that had it may have removed it meanwhile.
        guard isSame(descriptor, path) else {
          close(descriptor)
          continue
        }
        if isNew || clear(descriptor) { return .taken(descriptor) }
      }
      close(descriptor)
      return .used
    }
    return .used
  }

  /// Whether it is a folder that a run of this user has made.
  private static func isOwn(_ descriptor: Int32) -> Bool {
    var status = stat()
    let mask = S_ISVTX | S_IRWXU | S_IRWXG | S_IRWXO
    return fstat(descriptor, &status) == 0 && status.st_uid == geteuid() && status.st_mode & mask == mode
  }

  private static func isSame(_ descriptor: Int32, _ path: String) -> Bool {
    var (own, present) = (stat(), stat())
    return fstat(descriptor, &own) == 0 && lstat(path, &present) == 0 && own.st_dev == present.st_dev
      && own.st_ino == present.st_ino
  }

  /// Whether the program has left it at its place. One that it has moved is the program's.
  private var isInPlace: Bool { descriptor >= 0 && Self.isSame(descriptor, path) }

  /// Takes the folder that the program has put in its place. Returns false if there is none, or if it is mounted there.
  private func adopt() -> Bool {
    let found = Self.openFolder(path, in: AT_FDCWD)
    guard found >= 0 else { return false }
    if descriptor >= 0 {
      guard let mount = Self.mount(of: found), mount == Self.mount(of: descriptor) else {
        close(found)
        return false
      }
    }
    flock(found, LOCK_EX | LOCK_NB)
    replaceDescriptor(found)
    return true
  }

  private func replaceDescriptor(_ other: Int32) {
    if descriptor >= 0 { close(descriptor) }
    descriptor = other
  }

  // MARK: Emptying

  /// Opens a folder, and no link, also if its permissions do not allow it.
  private static func openFolder(_ name: UnsafePointer<CChar>, in folder: Int32) -> Int32 {
    let usual = openat(folder, name, flags)
    guard usual < 0 && errno == EACCES else { return usual }
    let place = openat(folder, name, onlyName | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    guard place >= 0 else { return place }
    defer { close(place) }
    // Such a descriptor only names the folder; the path leads to just that one.
    chmod("/proc/self/fd/\(place)", S_IRWXU)
    return openat(place, ".", flags)
  }

  /// Returns false if something is left.
  @discardableResult
  private static func clear(_ folder: Int32) -> Bool {
    // The program may have protected it.
    fchmod(folder, mode)
    // One with a place of its own, from the beginning.
    let copy = openat(folder, ".", flags)
    guard copy >= 0 else { return false }
    guard let list = fdopendir(copy) else {
      close(copy)
      return false
    }
    defer { closedir(list) }
    var isEmpty = true
    while let entry = readdir(list) {
      // SAFETY: the name is at this place of the entry, and ends with a zero; it stays until the next entry is read.
      let name = (UnsafeRawPointer(entry) + MemoryLayout<dirent>.offset(of: \.d_name)!)
        .assumingMemoryBound(to: CChar.self)
      if strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || unlinkat(folder, name, 0) == 0 { continue }
      isEmpty = errno == EISDIR && remove(name, in: folder) && isEmpty
    }
    return isEmpty
  }

  /// Removes a folder in another one. What is mounted there, perhaps a folder of the user, stays.
  private static func remove(_ name: UnsafePointer<CChar>, in folder: Int32) -> Bool {
    let inner = openFolder(name, in: folder)
    guard inner >= 0 else { return false }
    defer { close(inner) }
    guard let mount = mount(of: inner), mount == Self.mount(of: folder) else { return false }
    clear(inner)
    return unlinkat(folder, name, AT_REMOVEDIR) == 0
  }

  /// The number of the mount through which a folder was opened. A folder that is mounted twice has one device, and two of
  /// these.
  private static func mount(of descriptor: Int32) -> String? {
    let file = open("/proc/self/fdinfo/\(descriptor)", O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return nil }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: 512)
    let count = read(file, &bytes, bytes.count)
    let lines = bytes.prefix(max(count, 0)).split(separator: UInt8(ascii: "\n"))
    return lines.first { $0.starts(with: "mnt_id:".utf8) }.map { String(decoding: $0, as: UTF8.self) }
  }
}
