import Glibc
import Testing

/// A folder that is removed with its owner.
final class TemporaryFolder: Sendable {
  let path: String

  init() throws {
    var template = Array("\(Self.home)/concourse-tool-test-XXXXXX".utf8CString)
    try #require(mkdtemp(&template) != nil)
    // Resolved, since the command prints resolved paths of libraries.
    path = try #require(
      realpath(template, nil).map { resolved in
        defer { free(resolved) }
        return String(cString: resolved)
      })
  }

  private static var home: String {
    getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
  }

  deinit { Self.remove(path) }

  /// Removes a file, or a folder with its contents.
  static func remove(_ path: String) {
    var status = stat()
    guard lstat(path, &status) == 0 else { return }
    if status.st_mode & S_IFMT == S_IFDIR, let folder = opendir(path) {
      while let entry = readdir(folder) {
        let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
          String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
        if name != "." && name != ".." { remove(path + "/" + name) }
      }
      closedir(folder)
    }
    _ = Glibc.remove(path)
  }

  /// Makes a file and its parent folders.
  /// - Returns: its path.
  @discardableResult
  func write(_ bytes: some Collection<UInt8>, to name: String, mode: mode_t = 0o644) throws -> String {
    let path = try place(name)
    let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    try #require(descriptor >= 0)
    do {
      defer { close(descriptor) }
      let bytes = Array(bytes)
      try #require(Glibc.write(descriptor, bytes, bytes.count) == bytes.count)
      try #require(fchmod(descriptor, mode) == 0)
    }
    if mode & 0o111 != 0 { try awaitEndOfWriters(path) }
    return path
  }

  /// A process that another test has just forked has the descriptor until it executes its program; the file cannot be
  /// executed before. The kernel grants a read lease only on a file that no process has open for writing. A file
  /// system without leases also refuses it, hence the limit.
  private func awaitEndOfWriters(_ path: String) throws {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    try #require(descriptor >= 0)
    defer { close(descriptor) }
    let setLease: Int32 = 1024  // F_SETLEASE, which Swift does not import.
    let deadline = ContinuousClock.now + .seconds(10)
    while fcntl(descriptor, setLease, F_RDLCK) != 0 {
      if errno != EAGAIN || ContinuousClock.now > deadline { return }
      sched_yield()
    }
    // Here, since another forked process may have this descriptor.
    try #require(fcntl(descriptor, setLease, F_UNLCK) == 0)
  }

  @discardableResult
  func copy(_ original: String, to name: String) throws -> String {
    let descriptor = open(original, O_RDONLY | O_CLOEXEC)
    try #require(descriptor >= 0, "\(original)")
    defer { close(descriptor) }
    var status = stat()
    try #require(fstat(descriptor, &status) == 0)
    let bytes = try [UInt8](unsafeUninitializedCapacity: Int(status.st_size)) { buffer, filled in
      filled = read(descriptor, buffer.baseAddress, buffer.count)
      try #require(filled == buffer.count)
    }
    return try write(bytes, to: name, mode: status.st_mode & 0o777)
  }

  /// The path for a file in the folder; makes its parent folders.
  func place(_ name: String) throws -> String {
    var folder = path
    for part in name.split(separator: "/").dropLast() {
      folder += "/" + part
      try #require(mkdir(folder, 0o755) == 0 || errno == EEXIST)
    }
    return path + "/" + name
  }
}
