import CConcourseTesting
import CTracing
import ConcourseSchedules
import Glibc

/// A process of the test program that makes a child for each schedule.
final class TestServer {
  private let file: ExploringFile
  private let output: Int32
  private let socket: Int32
  private let folder: RunFolder?
  private var process: pid_t = 0
  private(set) var symbols = ExplorationSymbols(base: 0)

  /// The test makes threads before it comes to the exploration, or waits for one.
  struct NeedsThreads: Error {}
  /// The test ends without coming to the exploration.
  struct NeverArrives: Error {
    let reason: ExplorationError
  }

  /// How long the test may take to the exploration, and how long a schedule may take, whose thread that computes without an
  /// end is stopped before: in milliseconds.
  private static let patience: Int32 = 60_000

  /// - Parameters:
  ///   - arguments: What makes the test program run one test.
  ///   - name: The exploration of that test.
  ///   - isEarly: Whether each schedule begins with the process, and not with the exploration.
  init(arguments: [String], name: String, isEarly: Bool) throws {
    let library = try ExploringLibrary.path()
    guard let file = ExploringFile(switches: ExploringFile.mostSwitches, events: ExploringFile.mostEvents)
    else {
      throw ExplorationError("no memory or no descriptors: \(String(cString: strerror(errno)))")
    }
    self.file = file
    folder = RunFolder(in: ConcourseTesting.environment(RunFolder.variable))
    var sockets: [Int32] = [-1, -1]
    let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    (output, socket) = (tracing_memory_file(), socketpair(AF_UNIX, type, 0, &sockets) == 0 ? sockets[0] : -1)
    defer { close(sockets[1]) }
    guard output >= 0 && socket >= 0 else {
      throw ExplorationError("no memory or no descriptors: \(String(cString: strerror(errno)))")
    }
    process = try Self.start(
      arguments,
      Self.environment(
        library: library, folder: folder,
        name:
          "\(Character(UnicodeScalar(UInt8(isEarly ? CONCOURSE_TESTING_EARLY : CONCOURSE_TESTING_LATE))))\(name)"
      ),
      descriptors: [
        (sockets[1], CONCOURSE_TESTING_SOCKET), (file.descriptor, CONCOURSE_TESTING_FILE),
        (output, CONCOURSE_TESTING_OUTPUT),
      ])
    close(sockets[1])
    sockets[1] = -1
    guard isReadable() else {
      if !isEarly { throw NeedsThreads() }
      throw ExplorationError("the test, alone in a process with \(library), did not begin within a minute")
    }
    var answer: UInt8 = 0
    let count = Self.retry { read(socket, &answer, 1) }
    if count == 1, Int(answer) == CONCOURSE_TESTING_READY {
      var base: UInt64 = 0
      guard Self.retry({ recv(socket, &base, 8, Int32(MSG_WAITALL)) }) == 8 else {
        throw ExplorationError("the process that runs schedules has ended")
      }
      symbols = ExplorationSymbols(base: base)
      return
    }
    if count == 1, Int(answer) == CONCOURSE_TESTING_HAS_THREADS { throw NeedsThreads() }
    let output = String(decoding: written, as: UTF8.self)
    let reason = ExplorationError(
      Self.refusal(count == 1 ? Int(answer) : 0, library) + (output.isEmpty ? "" : "\n\(output)"))
    throw count == 1 ? reason : NeverArrives(reason: reason)
  }

  deinit {
    if socket >= 0 { close(socket) }
    if output >= 0 { close(output) }
    guard process > 0 else { return }
    // A run ends with the server.
    kill(process, SIGKILL)
    while waitpid(process, nil, 0) < 0 && errno == EINTR {}
  }

  /// Waits for a byte of the server's, or for its end. Returns false if neither comes in time.
  private func isReadable() -> Bool {
    var entry = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
    return Self.retry { Int(poll(&entry, 1, Self.patience)) } > 0
  }

  private static func refusal(_ answer: Int, _ library: String) -> String {
    switch answer {
    case CONCOURSE_TESTING_WITHOUT_LIBRARY: "\(library) was not loaded"
    case CONCOURSE_TESTING_OTHER_DISPATCH:
      "the test program contains a Dispatch of its own, as with the product Concourse; explore what uses the toolchain's"
    case CONCOURSE_TESTING_OTHER_VERSION: "\(library) is of another version"
    default: "the test, alone in a process with \(library), does not come to the exploration"
    }
  }

  /// Runs one schedule.
  func run(_ schedule: Schedule) throws -> ScheduleResult {
    file.prepare(schedule)
    concourse_testing_move_here(process)
    ftruncate(output, 0)
    lseek(output, 0, SEEK_SET)
    var request: UInt8 = 1
    var status: Int32 = 0
    guard Self.retry({ send(socket, &request, 1, Int32(MSG_NOSIGNAL)) }) == 1 else {
      throw ExplorationError("the process that runs schedules has ended")
    }
    guard isReadable() else { throw ExplorationError("a schedule did not end within a minute") }
    guard Self.retry({ recv(socket, &status, 4, Int32(MSG_WAITALL)) }) == 4, status != -1
    else { throw ExplorationError("the process that runs schedules has ended") }
    // The next schedule makes files of the same names.
    folder?.clear()
    return ScheduleResult(file, status: status, output: written)
  }

  private static func retry(_ call: () -> Int) -> Int {
    while true {
      let result = call()
      if result >= 0 || errno != EINTR { return result }
    }
  }

  /// What the test has printed, at most 64 KiB.
  private var written: [UInt8] {
    // SAFETY: `pread` writes at most that, and says how many.
    [UInt8](unsafeUninitializedCapacity: 1 << 16) { buffer, filled in
      filled = max(0, pread(output, buffer.baseAddress, buffer.count, 0))
    }
  }

  // MARK: The beginning

  private static func environment(library: String, folder: RunFolder?, name: String) -> [String] {
    var changed = [
      "LD_PRELOAD": [library, ConcourseTesting.environment("LD_PRELOAD") ?? ""].filter { !$0.isEmpty }.joined(
        separator: ":"),
      CONCOURSE_TESTING_VARIABLE: name,
      // Otherwise each child looks up the functions that it calls.
      "LD_BIND_NOW": "1",
      "SWIFT_DETERMINISTIC_HASHING": "1",
      // A trap would start the program that prints backtraces.
      "SWIFT_BACKTRACE": "enable=no",
    ]
    if let folder { changed[RunFolder.variable] = folder.path }
    var entries = changed.map { "\($0.key)=\($0.value)" }.sorted()
    // SAFETY: as with `posix_spawn` itself, a test that changes the environment meanwhile must not run beside others.
    var next = environ
    while let entry = next.pointee {
      let text = String(cString: entry)
      if changed[String(text.prefix { $0 != "=" })] == nil { entries.append(text) }
      next += 1
    }
    return entries
  }

  /// The descriptors that a new process would have, besides the first three.
  private static func inherited() -> [Int32] {
    guard let folder = opendir("/proc/self/fd") else { return [] }
    defer { closedir(folder) }
    var found: [Int32] = []
    while let entry = readdir(folder) {
      // SAFETY: the name ends with a zero.
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      guard let number = Int32(name), number > STDERR_FILENO, fcntl(number, F_GETFD) & FD_CLOEXEC == 0 else {
        continue
      }
      found.append(number)
    }
    return found
  }

  private static func start(
    _ arguments: [String], _ environment: [String], descriptors: [(Int32, Int)]
  ) throws -> pid_t {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    // The numbers of the server's descriptors may be taken here.
    let sources = descriptors.map { fcntl($0.0, F_DUPFD_CLOEXEC, Int32(CONCOURSE_TESTING_OUTPUT + 1)) }
    defer { for source in sources { close(source) } }
    guard !sources.contains(-1) else { throw ExplorationError("no descriptors are left") }
    // What other tests have open: the server lives longer than they expect of a process that they start.
    for open in inherited() { posix_spawn_file_actions_addclose(&actions, open) }
    for (own, new) in zip(sources, descriptors) {
      posix_spawn_file_actions_adddup2(&actions, own, Int32(new.1))
    }
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    // Threads of Dispatch block signals.
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    // Other tests may ignore some. What ends the terminal's programs is for the test's own process.
    var usual = sigset_t()
    sigfillset(&usual)
    for signal in [SIGHUP, SIGINT, SIGQUIT] { sigdelset(&usual, signal) }
    posix_spawnattr_setsigdefault(&attributes, &usual)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
    guard let program = realpath("/proc/self/exe", nil) else {
      throw ExplorationError("the test program's file is not known")
    }
    defer { free(program) }
    let words = ([String(cString: program)] + arguments).map { strdup($0) } + [nil]
    let variables = environment.map { strdup($0) } + [nil]
    defer { for string in words + variables { free(string) } }
    let former = concourse_testing_fix_addresses()
    defer { concourse_testing_leave_addresses(former) }
    var process: pid_t = 0
    let error = posix_spawn(&process, program, &actions, &attributes, words, variables)
    guard error == 0 else {
      throw ExplorationError("the test program cannot be started: \(String(cString: strerror(error)))")
    }
    return process
  }
}
