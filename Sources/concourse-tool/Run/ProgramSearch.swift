import Glibc

/// Finds a program by name, as `execvp` does.
enum ProgramSearch {
  enum Result: Equatable {
    case found(String)
    case absent
    /// The file exists but cannot be run: the path, and `errno`.
    case notRunnable(String, Int32)
  }

  /// - Parameter searchPath: The value of PATH; nil if it is not set.
  static func find(_ name: String, searchPath: String?) -> Result {
    guard !name.isEmpty else { return .absent }
    if name.utf8.contains(UInt8(ascii: "/")) { return examine(name) }
    var refused: Result = .absent
    for directory in (searchPath ?? "/bin:/usr/bin").split(separator: ":", omittingEmptySubsequences: false) {
      // An empty entry means the current directory.
      let result = examine((directory.isEmpty ? "." : directory) + "/" + name)
      if case .found = result { return result }
      if refused == .absent { refused = result }
    }
    return refused
  }

  private static func examine(_ path: String) -> Result {
    var status = stat()
    guard stat(path, &status) == 0 else {
      let error = errno
      return error == ENOENT || error == ENOTDIR ? .absent : .notRunnable(path, error)
    }
    if status.st_mode & S_IFMT == S_IFDIR { return .notRunnable(path, EISDIR) }
    if status.st_mode & S_IFMT != S_IFREG { return .notRunnable(path, EACCES) }
    // Checks the effective user, as the kernel will.
    return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0 ? .found(path) : .notRunnable(path, errno)
  }
}
