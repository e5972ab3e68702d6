import Glibc

/// A run of a built program, whose output can be waited for.
package final class ProgramRun {
  package private(set) var output: [UInt8] = []
  package private(set) var errors: [UInt8] = []
  package let process: pid_t
  /// -1 after the end.
  package private(set) var outputPipe: Int32
  private var errorPipe: Int32
  private var status: Int32?
  /// How much of each `outputLine` and `errorLine` have returned.
  private var outputLines = 0
  private var errorLines = 0

  /// The directory of the built programs: the package manager puts them beside the tests' own executable.
  private static let folder: String = {
    var buffer = [UInt8](repeating: 0, count: Int(PATH_MAX))
    let length = buffer.withUnsafeMutableBytes { bytes in
      // SAFETY: characters have no structure.
      readlink("/proc/self/exe", bytes.baseAddress!.assumingMemoryBound(to: CChar.self), bytes.count)
    }
    return "/"
      + String(decoding: buffer.prefix(max(0, length)), as: UTF8.self).split(separator: "/").dropLast()
      .joined(separator: "/")
  }()

  package static func path(of program: String) -> String { "\(folder)/\(program)" }

  /// Starts a program.
  ///
  /// - Parameters:
  ///   - program: a name such as "dupes", or a path.
  ///   - directory: its working directory.
  ///   - prelude: shell commands that run before it, in its process.
  package init(_ program: String, _ arguments: [[UInt8]], in directory: String = "/", prelude: String = ":") {
    // Named pipes: no program that another test starts at the same time inherits their ends.
    let pipes = TemporaryTree()
    (outputPipe, errorPipe) = (
      ProgramRun.openPipe(pipes.path("output")), ProgramRun.openPipe(pipes.path("errors"))
    )
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 1, pipes.path("output"), O_WRONLY, 0)
    posix_spawn_file_actions_addopen(&actions, 2, pipes.path("errors"), O_WRONLY, 0)
    // What other tests have open without O_CLOEXEC would count against the program's limit.
    for other: Int32 in 3..<256 { posix_spawn_file_actions_addclose(&actions, other) }

    // The program starts with the usual signal settings, whatever those of this process are.
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var signals = sigset_t()
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    for signal in [SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGPIPE] { sigaddset(&signals, signal) }
    posix_spawnattr_setsigdefault(&attributes, &signals)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

    let file = program.contains("/") ? program : ProgramRun.path(of: program)
    let words =
      ["/bin/sh", "-c", "cd \"$0\" || exit; \(prelude); exec \"$@\"", directory, file].map {
        [UInt8]($0.utf8)
      }
      + arguments
    // SAFETY: copies of the words, which live until the end of this initializer, when they are freed.
    let argv = words.map { word in strdup(word.map { CChar(bitPattern: $0) } + [0]) } + [nil]
    defer { for word in argv { free(word) } }
    var process = pid_t()
    let failure = posix_spawn(&process, "/bin/sh", &actions, &attributes, argv, environ)
    guard failure == 0 else { fatalError("posix_spawn: \(String(cString: strerror(failure)))") }
    self.process = process
  }

  package convenience init(
    _ program: String, _ arguments: String..., in directory: String = "/", prelude: String = ":"
  ) {
    self.init(program, arguments.map { [UInt8]($0.utf8) }, in: directory, prelude: prelude)
  }

  deinit {
    if status == nil {
      kill(process, SIGKILL)
      waitpid(process, nil, 0)
    }
    for pipe in [outputPipe, errorPipe] where pipe >= 0 { close(pipe) }
  }

  private static func openPipe(_ path: String) -> Int32 {
    guard mkfifo(path, 0o600) == 0 else { fatalError("mkfifo: errno \(errno)") }
    return open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
  }

  package var outputText: String { String(decoding: output, as: UTF8.self) }
  package var errorText: String { String(decoding: errors, as: UTF8.self) }

  package func send(_ signal: Int32) { kill(process, signal) }

  /// The next line without its newline; empty at the end.
  package func outputLine() -> String { line(of: \.output, \.outputPipe, from: \.outputLines) }
  package func errorLine() -> String { line(of: \.errors, \.errorPipe, from: \.errorLines) }

  private func line(
    of bytes: KeyPath<ProgramRun, [UInt8]>, _ pipe: KeyPath<ProgramRun, Int32>,
    from start: ReferenceWritableKeyPath<ProgramRun, Int>
  ) -> String {
    let newline = UInt8(ascii: "\n")
    wait { $0[keyPath: pipe] < 0 || $0[keyPath: bytes].dropFirst($0[keyPath: start]).contains(newline) }
    let line = self[keyPath: bytes].dropFirst(self[keyPath: start]).prefix { $0 != newline }
    self[keyPath: start] += line.count + 1
    return String(decoding: line, as: UTF8.self)
  }

  /// Reads what comes until the condition holds. Gives up, and returns false, when nothing has come for 30 seconds.
  @discardableResult
  package func wait(readingOutput: Bool = true, until condition: (ProgramRun) -> Bool) -> Bool {
    while !condition(self) {
      var polls = [pollfd(fd: errorPipe, events: Int16(POLLIN), revents: 0)]
      if readingOutput { polls.append(pollfd(fd: outputPipe, events: Int16(POLLIN), revents: 0)) }
      guard polls.contains(where: { $0.fd >= 0 }), poll(&polls, nfds_t(polls.count), 30_000) > 0 else {
        return false
      }
      if polls[0].revents != 0 { read(&errorPipe, into: &errors) }
      if readingOutput, polls[1].revents != 0 { read(&outputPipe, into: &output) }
    }
    return true
  }

  /// Reads everything, and returns the exit status, as a shell tells it.
  package func end(readingOutput: Bool = true) -> Int32 {
    let ended = wait(readingOutput: readingOutput) {
      $0.errorPipe < 0 && (!readingOutput || $0.outputPipe < 0)
    }
    if !ended { kill(process, SIGKILL) }
    var status: Int32 = 0
    while waitpid(process, &status, 0) < 0 && errno == EINTR {}
    self.status = status
    return status & 0x7F == 0 ? (status >> 8) & 0xFF : 128 + (status & 0x7F)
  }

  /// Closes the output. On return nothing can read it.
  package func closeOutput() {
    close(outputPipe)
    outputPipe = -1
    // A program that another test is starting has the reading end until its exec. A pipe without a reader cannot be
    // opened for writing.
    while true {
      let writer = open("/proc/\(process)/fd/1", O_WRONLY | O_NONBLOCK | O_CLOEXEC)
      guard writer >= 0 else { return }
      close(writer)
      sched_yield()
    }
  }

  private func read(_ pipe: inout Int32, into all: inout [UInt8]) {
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    let count = Glibc.read(pipe, &buffer, buffer.count)
    if count > 0 {
      all += buffer[..<count]
    } else if count == 0 {
      close(pipe)
      pipe = -1
    }
  }
}
