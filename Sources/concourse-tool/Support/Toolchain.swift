import CTracing
import Glibc

/// Programs of the toolchain.
enum Toolchain {
  /// The program's path: on PATH, or beside `swift`.
  static func find(_ name: String) -> String? {
    let path = getenv("PATH").map { String(cString: $0) }
    if case .found(let found) = ProgramSearch.find(name, searchPath: path) { return found }
    guard case .found(let swift) = ProgramSearch.find("swift", searchPath: path),
      let resolved = FilePath.resolved(swift)
    else { return nil }
    let beside = resolved.split(separator: "/").dropLast().reduce("") { $0 + "/" + $1 } + "/" + name
    return access(beside, X_OK) == 0 ? beside : nil
  }

  /// Runs a program with `input`, which must fit into memory twice.
  /// - Returns: its output; nil if it cannot be run or fails.
  static func run(_ path: String, _ arguments: [String], _ input: String) -> String? {
    // A file, not a pipe: so neither side waits for the other.
    let file = tracing_memory_file()
    guard file >= 0 else { return nil }
    defer { close(file) }
    let bytes = Array(input.utf8)
    guard bytes.withUnsafeBytes({ write(file, $0.baseAddress, $0.count) }) == bytes.count else { return nil }
    lseek(file, 0, SEEK_SET)
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0 else { return nil }
    _ = fcntl(ends[0], F_SETFD, FD_CLOEXEC)
    _ = fcntl(ends[1], F_SETFD, FD_CLOEXEC)
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, file, STDIN_FILENO)
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO)
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0)
    var words = ([path] + arguments).map { strdup($0) } + [nil]
    defer { for word in words { free(word) } }
    var child: pid_t = 0
    let failure = posix_spawn(&child, path, &actions, nil, &words, environ)
    close(ends[1])
    defer { close(ends[0]) }
    guard failure == 0 else { return nil }
    var output: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: 65536)
    while true {
      let count = read(ends[0], &piece, piece.count)
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { break }
      output += piece[..<count]
    }
    var status: Int32 = 0
    while waitpid(child, &status, 0) < 0 && errno == EINTR {}
    return status == 0 ? String(decoding: output, as: UTF8.self) : nil
  }
}
