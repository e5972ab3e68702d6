import DupesKit
import Glibc
import Testing

/// A run of the built program.
struct ProgramRun {
  let status: Int32
  let output: Bytes
  let errors: String

  /// The program that the package manager put beside this test's own executable.
  static let program: String = {
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
    let length = readlink("/proc/self/exe", &buffer, buffer.count)
    let me = String(decoding: buffer.prefix(max(0, length)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    return me.split(separator: "/").dropLast().reduce("") { $0 + "/" + $1 } + "/dupes"
  }()

  /// - Parameters:
  ///   - command: the words before the arguments; the program itself unless told.
  ///   - text: what `then` waits for on standard error.
  ///   - then: called once with the process, when `text` is there.
  init(
    _ arguments: [Bytes], through command: [String] = [ProgramRun.program], in tree: TemporaryTree,
    whenErrorsContain text: String = "", then: (pid_t) -> Void = { _ in }
  ) {
    // Standard output goes to a file and standard error to a named pipe: one pipe to read cannot deadlock,
    // and no program that another test starts meanwhile can inherit an end of a pipe opened by name.
    let outside = TemporaryTree()
    #expect(mkfifo(outside.path("errors"), 0o600) == 0)
    let pipe = open(outside.path("errors"), O_RDONLY | O_NONBLOCK | O_CLOEXEC)
    #expect(pipe >= 0)
    defer { close(pipe) }
    // The shell's part is to change the directory, for which posix_spawn has no portable way.
    let words =
      ["/bin/sh", "-c", "cd \"$0\" && exec \"$@\"", tree.root].map(\.bytes) + command.map(\.bytes) + arguments

    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 1, outside.path("output"), O_WRONLY | O_CREAT, 0o644)
    posix_spawn_file_actions_addopen(&actions, 2, outside.path("errors"), O_WRONLY, 0)
    // What other tests have open just now, without the flag that keeps it from a child, is none of the program's.
    for other: Int32 in 3..<256 { posix_spawn_file_actions_addclose(&actions, other) }

    // Whatever this process does about signals, the program starts with the usual settings.
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var signals = sigset_t()
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    sigaddset(&signals, SIGINT)
    sigaddset(&signals, SIGTERM)
    posix_spawnattr_setsigdefault(&attributes, &signals)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

    // SAFETY: copies of the words, which live until the end of this initializer, when they are freed.
    var argv: [UnsafeMutablePointer<CChar>?] = words.map { word in
      strdup(word.map { CChar(bitPattern: $0) } + [0])
    }
    argv.append(nil)
    defer {
      for word in argv { free(word) }
    }
    var process = pid_t()
    let failure = posix_spawn(&process, argv[0]!, &actions, &attributes, argv, environ)
    guard failure == 0 else {
      Issue.record("posix_spawn \(command[0]): \(String(cString: strerror(failure)))")
      (status, output, errors) = (-1, [], "")
      return
    }

    // The program has opened its end by now, so from here on reading may wait for it.
    #expect(fcntl(pipe, F_SETFL, 0) == 0)
    let errors = ProgramRun.readAll(pipe, whenThereIs: text) { then(process) }
    var status: Int32 = 0
    while waitpid(process, &status, 0) < 0 && errno == EINTR {}
    // A shell's way to tell a death by signal, which no test expects.
    self.status = status & 0x7F == 0 ? (status >> 8) & 0xFF : 128 + (status & 0x7F)
    self.errors = String(decoding: errors, as: UTF8.self)
    let file = open(outside.path("output"), O_RDONLY | O_CLOEXEC)
    output = ProgramRun.readAll(file)
    close(file)
  }

  private static func readAll(
    _ descriptor: Int32, whenThereIs text: String = "", then: () -> Void = {}
  ) -> Bytes {
    var all: Bytes = []
    var isThere = false
    var buffer = Bytes(repeating: 0, count: 65536)
    while true {
      let count = read(descriptor, &buffer, buffer.count)
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { return all }
      all += buffer[..<count]
      if !isThere && String(decoding: all, as: UTF8.self).contains(text) {
        isThere = true
        then()
      }
    }
  }
}
