import Glibc

/// A file that a command writes. Others must not make the command write elsewhere, nor read what it writes.
struct OutputFile: ~Copyable {
  struct Failure: Error {
    let path: String
    let reason: String
  }

  let path: String
  private let descriptor: Int32

  /// A new file with a name of ours, in the working directory: `base` and `ending`, with a number between them if the
  /// name is taken.
  init(free base: String, _ ending: String) throws(Failure) {
    for number in 1...1000 {
      let path = base + (number == 1 ? "" : "-\(number)") + ending
      let made = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
      if made >= 0 {
        (self.path, descriptor) = (path, made)
        return
      }
      guard errno == EEXIST else { throw Failure(path: path, reason: describe(error: errno)) }
    }
    throw Failure(path: base + ending, reason: "that name and 999 others are taken")
  }

  /// The file that the user named. A regular file is overwritten, but not through a symbolic link; a device or a pipe,
  /// such as /dev/stdout, is written to.
  init(named path: String) throws(Failure) {
    var status = stat()
    let isRegular = stat(path, &status) != 0 || status.st_mode & S_IFMT == S_IFREG
    descriptor = open(
      path, O_WRONLY | O_CLOEXEC | (isRegular ? O_CREAT | O_TRUNC | O_NOFOLLOW : 0), 0o600)
    self.path = path
    guard descriptor >= 0 else {
      throw Failure(path: path, reason: errno == ELOOP ? Self.isLink : describe(error: errno))
    }
  }

  /// Finds early that `init(named:)` would fail.
  static func check(_ path: String) throws(Failure) {
    var status = stat()
    let exists = stat(path, &status) == 0
    // A name that is too long, a folder that is none, or one that may not be searched.
    guard exists || errno == ENOENT || errno == ELOOP else {
      throw Failure(path: path, reason: describe(error: lastError()))
    }
    if exists && status.st_mode & S_IFMT == S_IFDIR {
      throw Failure(path: path, reason: describe(error: EISDIR))
    }
    let isRegular = !exists || status.st_mode & S_IFMT == S_IFREG
    if isRegular && lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK {
      throw Failure(path: path, reason: isLink)
    }
    if exists ? access(path, W_OK) != 0 : access(FilePath.directory(of: path), W_OK | X_OK) != 0 {
      throw Failure(path: path, reason: describe(error: lastError()))
    }
  }

  private static let isLink = "it is a symbolic link"

  deinit { close(descriptor) }

  func write(_ bytes: [UInt8]) throws(Failure) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { throw Failure(path: path, reason: describe(error: errno)) }
      rest = rest.dropFirst(count)
    }
  }
}
