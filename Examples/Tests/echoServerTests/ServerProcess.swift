import Glibc
import Testing

/// A run of the built program.
final class ServerProcess {
  let process: pid_t
  private let output: Int32
  private let errors: Int32

  /// The program that the package manager put beside this test's own executable.
  static let program: String = {
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
    let length = readlink("/proc/self/exe", &buffer, buffer.count)
    let me = String(decoding: buffer.prefix(max(0, length)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    return me.split(separator: "/").dropLast().reduce("") { $0 + "/" + $1 } + "/echo-server"
  }()

  /// - Parameter prelude: shell commands to run before the program, in its process.
  init(_ arguments: [String], prelude: String = ":") throws {
    let (output, outputEnd) = try ServerProcess.makePipe()
    let (errors, errorsEnd) = try ServerProcess.makePipe()
    defer {
      close(outputEnd)
      close(errorsEnd)
    }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, outputEnd, STDOUT_FILENO)
    posix_spawn_file_actions_adddup2(&actions, errorsEnd, STDERR_FILENO)

    // Whatever this process does about signals, the program starts with the usual settings.
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var signals = sigset_t()
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    for signal in [SIGINT, SIGTERM, SIGUSR1, SIGPIPE] { sigaddset(&signals, signal) }
    posix_spawnattr_setsigdefault(&attributes, &signals)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

    let words =
      ["/bin/sh", "-c", "\(prelude); exec \"$0\" \"$@\"", ServerProcess.program] + arguments
    // SAFETY: copies of the words, which live until the end of this initializer, when they are freed.
    let argv: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
    defer { for word in argv { free(word) } }
    var process = pid_t()
    let failure = posix_spawn(&process, "/bin/sh", &actions, &attributes, argv, environ)
    try #require(failure == 0, "posix_spawn: \(String(cString: strerror(failure)))")
    self.process = process
    self.output = output
    self.errors = errors
  }

  deinit {
    close(output)
    close(errors)
  }

  private static func makePipe() throws -> (reading: Int32, writing: Int32) {
    var ends: [Int32] = [-1, -1]
    try #require(pipe(&ends) == 0)
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    return (ends[0], ends[1])
  }

  /// The port that the program says it listens on, once it does.
  func port() throws -> UInt16 {
    let line = outputLine()
    try #require(line.hasPrefix("echo-server: listening on 127.0.0.1:"), "\(line)")
    return try #require(UInt16(line.split(separator: ":").last ?? ""))
  }

  func outputLine() -> String { line(of: output) }
  func errorLine() -> String { line(of: errors) }
  func send(_ signal: Int32) { #expect(kill(process, signal) == 0) }

  /// Waits for the end. Returns the exit status, as a shell tells it.
  func status() -> Int32 {
    var status: Int32 = 0
    while waitpid(process, &status, 0) < 0 && errno == EINTR {}
    return status & 0x7F == 0 ? (status >> 8) & 0xFF : 128 + (status & 0x7F)
  }

  /// The next line without its end; empty at the end of the stream. Byte by byte, to take no more than it.
  private func line(of descriptor: Int32) -> String {
    var bytes: [UInt8] = []
    var byte: UInt8 = 0
    while true {
      let count = read(descriptor, &byte, 1)
      if count < 0 && errno == EINTR { continue }
      if count <= 0 || byte == UInt8(ascii: "\n") { return String(decoding: bytes, as: UTF8.self) }
      bytes.append(byte)
    }
  }
}
